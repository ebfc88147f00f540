import type { PriceTable } from './price-table.ts';

const dayMs = 86_400_000;
/** On-demand prices change a few times a year. Older figures are still right for most machines, but not for all. */
const staleAfterDays = 90;

/** A sentence when a table's figures are old or incomplete; undefined otherwise. `now` is ms. */
export function catalogNotice({ cloud, date, partial }: PriceTable, now: number): string | undefined {
  const ageDays = Math.floor((now - Date.parse(`${date}T00:00:00Z`)) / dayMs);
  const parts = [
    ...(ageDays > staleAfterDays ? [`are of ${date}, ${ageDays} days ago`] : []),
    ...(partial === undefined ? [] : [`are not complete: ${partial}`]),
  ];
  return parts.length === 0 ? undefined : `Prices of ${cloud} ${parts.join(', and ')}. To refresh them: svc catalog update ${cloud}`;
}
