import type { PlaceableOffer } from '../domain/placement.ts';
import { askKey } from '../provision/acquire-machine.ts';
import type { ListedMachine, Provider } from '../providers/provider.ts';
import type { Logger } from '../shared/log.ts';
import type { OfferRecord } from '../domain/records.ts';

/** Dependencies of finding machines. */
interface MachineFinder {
  readonly log: Logger;
  providers(): Promise<readonly Provider[]>;
  provider(name: string): Promise<Provider>;
}

/**
 * A machine as the record of a replica or a cluster describes it. `offer` is the last one that was requested or
 * returned a machine. `key` is the prefix of the asks.
 */
interface MachineClaim {
  readonly key: string;
  readonly offer: OfferRecord | null;
  readonly machineId: string | null;
}

/** A machine found at a provider. */
export interface FoundMachine extends ListedMachine {
  readonly provider: Provider;
}

/** The tags of every machine that was ever requested for a replica. */
export function replicaTags(service: { readonly key: string }, replicaId: number): Readonly<Record<string, string>> {
  return { 'svc-service-key': service.key, 'svc-replica': String(replicaId) };
}

/**
 * Lists the machines with the given tags. While no machine is recorded, several providers may have been asked for one,
 * so all are searched. The recorded provider must answer; the sweep handles the others that do not.
 */
export async function findMachines(
  finder: MachineFinder,
  { offer, machineId }: MachineClaim,
  tags: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly FoundMachine[]> {
  const listAt = async (provider: Provider): Promise<readonly FoundMachine[]> =>
    (await provider.list(tags, { signal })).map((machine) => ({ provider, ...machine }));
  const own = offer === null ? undefined : await finder.provider(offer.provider);
  const others = machineId === null ? (await finder.providers()).filter(({ name }) => name !== own?.name) : [];
  const lists = await Promise.all([
    own === undefined ? [] : listAt(own),
    ...others.map((provider) =>
      listAt(provider).catch((error: unknown) => {
        finder.log.warn({ err: error, provider: provider.name }, 'could not search a provider for machines');
        return [];
      }),
    ),
  ]);
  return lists.flat();
}

/** Whether a machine belongs to a record. */
export function isClaimed(machine: FoundMachine, { offer, machineId, key }: MachineClaim): boolean {
  if (offer === null || machine.provider.name !== offer.provider) return false;
  if (machineId !== null) return machine.id === machineId;
  const asked = machine.tags['svc-key'];
  const expected = askKey(key, offerOf(offer));
  // Records from before kinds had keys of their own used the bare key in their asks.
  return asked === expected || asked?.startsWith(`${expected}-`) === true || asked === key;
}

/** The offer of a recorded placement, as far as ranking needs it. */
export function offerOf(record: OfferRecord): PlaceableOffer {
  const { provider, region, zone, instanceType, cpus = 0, accelerator, gpus, spot, hourlyUsd } = record;
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
