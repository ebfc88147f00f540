import { matchingGpus } from '../../domain/gpus.ts';
import type { Random } from '../../shared/random.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type { HostState } from './host.ts';
import { readShare, whyNoShare, type HostShare } from './host-share.ts';

/** What a new machine gets of its host. */
export interface Allotment extends HostShare {
  /** Null where the host has none to give. */
  readonly gpus: readonly number[] | null;
}

/** What an offer promised, if it is still free. Throws a refusal for this host when it is not. */
export function allot(offer: Offer, { facts, machines }: HostState, host: string): Allotment {
  const share = readShare(offer.instanceType) ?? { cpus: offer.cpus, memoryGb: offer.memoryGb };
  const why = whyNoShare(share, facts, machines);
  if (why !== undefined) throw new PlaceRefusal('capacity', 'zone', `The host ${host} ${why}.`);
  return { ...share, gpus: allotGpus(offer, { facts, machines }, host) };
}

function allotGpus({ accelerator }: Offer, { facts, machines }: Pick<HostState, 'facts' | 'machines'>, host: string): Allotment['gpus'] {
  if (facts.gpus.length === 0 && accelerator === undefined) return null;
  if (accelerator === undefined) return [];
  const taken = new Set(machines.flatMap((machine) => machine.gpus ?? []));
  const matching = matchingGpus(facts.gpus, { accelerator, acceleratorMemory: undefined });
  const free = matching.filter(({ index }) => !taken.has(index));
  if (free.length < accelerator.count) {
    const what = `${accelerator.count}x ${accelerator.name} are asked for; ${free.length} of ${matching.length} on ${host} are free.`;
    throw new PlaceRefusal('capacity', 'zone', what);
  }
  return free.slice(0, accelerator.count).map(({ index }) => index);
}

/** Below the ranges from which systems take ephemeral ports and svc takes endpoints. */
const firstPort = 20_000;
const portCount = 9_000;

/** What a machine without a network of its own listens on. */
export interface AllottedPorts {
  readonly ports: readonly number[];
  /** What its program is told to listen on instead of what it would by itself. */
  readonly ownPort: number | null;
}

/**
 * The ports of a machine on a host that cannot isolate: the very ones it serves, so that any program does, or where another machine has one of
 * them a port of its own for a program that listens where it is told to. Throws a refusal for this host when the program does not.
 */
export function allotPorts(
  spec: Pick<MachineSpec, 'ports' | 'followsPort'>,
  { machines }: HostState,
  host: string,
  random: Random,
): AllottedPorts {
  const taken = new Set(machines.flatMap(({ ports }) => ports));
  const clash = spec.ports.find((port) => taken.has(port));
  if (clash === undefined) return { ports: spec.ports, ownPort: null };
  if (spec.followsPort !== true) {
    const why = `Another machine has port ${clash} of the host ${host}, which cannot isolate machines from each other`;
    throw new PlaceRefusal('capacity', 'zone', `${why}; a program that listens on $SVC_REPLICA_PORT would get a port of its own.`);
  }
  for (;;) {
    const port = firstPort + Math.floor(random() * portCount);
    if (!taken.has(port)) return { ports: [port], ownPort: port };
  }
}
