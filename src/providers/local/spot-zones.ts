import type { LocalSpotZone } from '../../domain/config.ts';
import { SvcError } from '../../shared/errors.ts';
import type { MachineStatus, Offer } from '../provider.ts';
import type { MachineRecord } from './machine-store.ts';

/** One spot offer per zone, cheapest first. `machines`: all local machines; `offer`: this computer on demand. */
export function spotOffers(offer: Offer, zones: readonly LocalSpotZone[], machines: readonly MachineRecord[]): readonly Offer[] {
  return zones
    .filter(({ region }) => region === offer.region)
    .toSorted((a, b) => a.hourlyUsd - b.hourlyUsd)
    .map(({ name, hourlyUsd, room }) => {
      return { ...offer, zone: name, spot: true, hourlyUsd, room: Math.max(0, room - machinesIn(name, machines).length) };
    });
}

/** Throws SVC_CAPACITY when the zone of a spot offer has no room for one more machine. */
export function refuseByZone(zones: readonly LocalSpotZone[], { zone: name, spot }: Offer, machines: readonly MachineRecord[]): void {
  if (!spot || name === undefined) return;
  const zone = zones.find((one) => one.name === name);
  if (zone === undefined) throw new SvcError('SVC_CAPACITY', `There is no spot zone '${name}' on this computer any more.`);
  const count = machinesIn(name, machines).length;
  if (count >= zone.room)
    throw new SvcError('SVC_CAPACITY', `The zone '${name}' has ${count} spot machines and room for ${zone.room} (local.spot_zones).`);
}

/**
 * `ends`: now. Otherwise the machine ends at `reclaimedAt`, ms since the epoch; undefined: it stays. `isNoticed`: the
 * notice has been given. Before, there is a rebalance recommendation.
 */
interface Reclaim {
  readonly ends: boolean;
  readonly reclaimedAt: number | undefined;
  readonly isNoticed?: boolean;
}

/** Whether a zone reclaims a spot machine. It reclaims those beyond its room, the newest first, and never changes its mind. */
export function reclaimOf(
  record: MachineRecord,
  zones: readonly LocalSpotZone[],
  machines: readonly MachineRecord[],
  now: number,
): Reclaim {
  const { zone: name, reclaimedAt } = record;
  if (name === undefined) return { ends: false, reclaimedAt: undefined };
  const zone = zones.find((one) => one.name === name);
  const noticeMs = (zone?.reclaimAfterSeconds ?? 0) * 1_000;
  if (reclaimedAt !== undefined)
    return { ends: now >= reclaimedAt, reclaimedAt, isNoticed: zone === undefined || now >= reclaimedAt - noticeMs };
  const staying = machinesIn(name, machines)
    .filter((one) => one.reclaimedAt === undefined)
    .toSorted((a, b) => a.createdAt - b.createdAt || a.id.localeCompare(b.id));
  if (zone !== undefined && staying.findIndex(({ id }) => id === record.id) < zone.room) return { ends: false, reclaimedAt: undefined };
  const recommendedMs = (zone?.rebalanceSeconds ?? 0) * 1_000;
  return { ends: noticeMs + recommendedMs === 0, reclaimedAt: now + recommendedMs + noticeMs, isNoticed: recommendedMs === 0 };
}

/** The status of a running machine with its notice or recommendation, if any. */
export function runningUntil({ reclaimedAt, isNoticed }: Reclaim): MachineStatus {
  if (reclaimedAt === undefined) return { state: 'running' };
  return {
    state: 'running',
    notice: isNoticed === true ? { kind: 'interruption', at: reclaimedAt } : { kind: 'rebalance', at: undefined },
  };
}

const machinesIn = (zone: string, machines: readonly MachineRecord[]): readonly MachineRecord[] =>
  machines.filter((machine) => machine.zone === zone && !machine.preempted);
