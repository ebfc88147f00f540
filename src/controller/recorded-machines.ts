import type { PlaceableOffer } from '../domain/placement.ts';
import { askKey } from '../provision/acquire-machine.ts';
import type { ListedMachine, Provider } from '../providers/provider.ts';
import type { Logger } from '../shared/log.ts';
import type { PlaceRecord } from '../store/records.ts';

/** Where machines are looked for. */
export interface MachineFinder {
  readonly log: Logger;
  providers(): Promise<readonly Provider[]>;
  provider(name: string): Promise<Provider>;
}

/** What the record of a replica or a cluster says of its machine: `place` is where one was got or asked for last, `key` what the asks began with. */
export interface MachineClaim {
  readonly key: string;
  readonly place: PlaceRecord | null;
  readonly machineId: string | null;
}

/** A machine that a place has. */
export interface FoundMachine extends ListedMachine {
  readonly provider: Provider;
}

/** The tags by which every machine that was ever asked for on behalf of a replica is found. */
export function replicaTags(service: { readonly key: string }, replicaId: number): Readonly<Record<string, string>> {
  return { 'svc-service-key': service.key, 'svc-replica': String(replicaId) };
}

/**
 * What the places have under some tags. While no machine is recorded, several places may have been asked for one, so all are searched; the
 * recorded place must answer, others that don't are left to the sweep.
 */
export async function findMachines(
  finder: MachineFinder,
  { place, machineId }: MachineClaim,
  tags: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly FoundMachine[]> {
  const listAt = async (provider: Provider): Promise<readonly FoundMachine[]> =>
    (await provider.list(tags, { signal })).map((machine) => ({ provider, ...machine }));
  const own = place === null ? undefined : await finder.provider(place.provider);
  const others = machineId === null ? (await finder.providers()).filter(({ name }) => name !== own?.name) : [];
  const lists = await Promise.all([
    own === undefined ? [] : listAt(own),
    ...others.map((provider) =>
      listAt(provider).catch((error: unknown) => {
        finder.log.warn({ err: error, place: provider.name }, 'a place could not be searched for machines');
        return [];
      }),
    ),
  ]);
  return lists.flat();
}

/** Whether a machine is the one that a record speaks of. */
export function isClaimed(machine: FoundMachine, { place, machineId, key }: MachineClaim): boolean {
  if (place === null || machine.provider.name !== place.provider) return false;
  if (machineId !== null) return machine.id === machineId;
  const asked = machine.tags['svc-key'];
  const expected = askKey(key, offerOf(place));
  // Records of before kinds had keys of their own were asked with the bare one.
  return asked === expected || asked?.startsWith(`${expected}-`) === true || asked === key;
}

/** What a recorded place offered, as far as choosing places needs it. */
export function offerOf(place: PlaceRecord): PlaceableOffer {
  const { provider, region, zone, instanceType, cpus = 0, accelerator, gpus, spot, hourlyUsd } = place;
  return {
    provider,
    region,
    zone: zone ?? undefined,
    instanceType,
    cpus,
    accelerator: accelerator === undefined ? undefined : { name: accelerator, count: gpus },
    spot,
    hourlyUsd,
  };
}
