import type { ListedType } from '../catalog/list-machines.ts';
import { renderTable, type Column } from './table.ts';

const columns: readonly Column<ListedType>[] = [
  { title: 'GPU', value: ({ accelerator }) => accelerator?.name ?? '' },
  { title: 'QTY', value: ({ accelerator }) => (accelerator === undefined ? '' : String(accelerator.count)) },
  { title: 'CLOUD', value: ({ cloud }) => cloud },
  { title: 'INSTANCE_TYPE', value: ({ name }) => name },
  { title: 'DEVICE_MEM', value: ({ accelerator }) => gb(accelerator?.memoryGb), dropOrder: 2 },
  { title: 'vCPUs', value: ({ cpus }) => String(cpus), dropOrder: 4 },
  { title: 'HOST_MEM', value: ({ memoryGb }) => gb(memoryGb), dropOrder: 3 },
  { title: 'HOURLY_PRICE', value: ({ onDemandUsd, estimated }) => `${estimated ? '~' : ''}${dollars(onDemandUsd)}` },
  { title: 'HOURLY_SPOT_PRICE', value: ({ spotUsd }) => dollars(spotUsd), dropOrder: 1 },
  { title: 'REGION', value: ({ region }) => region, shrinksTo: 8 },
];

/** The table of `svc offers`: machine types with their prices per hour. */
export function renderOffers(offers: readonly ListedType[], width: number): readonly string[] {
  return renderTable(columns, offers, width);
}

function gb(amount: number | undefined): string {
  return amount === undefined ? '' : `${amount}GB`;
}

function dollars(amount: number | undefined): string {
  return amount === undefined ? '' : `$ ${amount.toFixed(amount < 0.1 ? 4 : 3)}`;
}
