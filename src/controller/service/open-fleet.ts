import type { BalancerHosts } from '../../domain/balancer-host.ts';
import type { ReplicasCommand } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { dialHosted } from '../balancer-host/host-link.ts';
import { watchMembers } from '../balancer-host/members-file.ts';
import { readSharedKey } from '../balancer-host/shared-key.ts';
import type { BalancerListeners } from './balancer-client.ts';
import { BalancerFleet } from './balancer-fleet.ts';
import { ownAddress, ReplicaRelays } from './replica-relay.ts';

/** What a service's balancers on machines of their own are reached with. */
export interface OpenFleetDeps {
  readonly hosts: BalancerHosts;
  /** The file that says who they are now. */
  readonly membersFile: string;
  /** Of the service. */
  readonly key: string;
  /** 0 where controllers have no rivals. */
  readonly term: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** A service's balancers on machines of their own, as one. */
export function openFleet(deps: OpenFleetDeps, listeners: BalancerListeners): BalancerFleet {
  const { hosts, membersFile, key, term, clock, log, signal } = deps;
  const relays = new ReplicaRelays({ clock, log, ownAddress: ownAddress() });
  const translate = (command: ReplicasCommand): ReplicasCommand => relays.translate(command);
  const dial = dialHosted({ key: readSharedKey(hosts.tokenFile), term, clock }, key);
  const fleet = new BalancerFleet({ clock, log, dial, translate }, listeners);
  const cancel = watchMembers(membersFile, clock, (members) => fleet.setMembers(members));
  signal.addEventListener('abort', () => (cancel(), relays.close(), fleet.close()), { once: true });
  return fleet;
}
