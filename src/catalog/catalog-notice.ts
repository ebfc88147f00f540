import type { PriceTable } from './price-table.ts';

const dayMs = 86_400_000;
/** Prices on demand change a few times a year; older figures are still right for most machines, but not for all. */
const staleAfterDays = 90;

/** A sentence that says when the figures of a table are old or not complete; undefined when they are neither. `now` is ms. */
export function catalogNotice({ cloud, date, partial }: PriceTable, now: number): string | undefined {
  const ageDays = Math.floor((now - Date.parse(`${date}T00:00:00Z`)) / dayMs);
  const parts = [
    ...(ageDays > staleAfterDays ? [`are of ${date}, ${ageDays} days ago`] : []),
    ...(partial === undefined ? [] : [`are not complete: ${partial}`]),
  ];
  return parts.length === 0 ? undefined : `Prices of ${cloud} ${parts.join(', and ')}. To refresh them: svc catalog update ${cloud}`;
}
