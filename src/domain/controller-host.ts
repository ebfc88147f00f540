import type { BalancerHosts } from './balancer-host.ts';
import { placeName } from './place-name.ts';
import { hourlyPrice } from './price.ts';

/** What a controller knows of the machine it runs on when that was chosen for it. On the machine one sits at there is nothing to know. */
export interface ControllerHost {
  /** Tag `svc-owner` of all machines that it launches, by which they are found when it is lost. */
  readonly key: string;
  /** Name or address at which clients reach endpoints. */
  readonly publicHost: string;
  /** Addresses from which it connects to replicas: machines let nobody else in. */
  readonly addresses: readonly string[];
  readonly place: ControllerPlace;
  /** What follows when nothing has needed it for a while: the machine is switched off, or only the controller ends. */
  readonly whenIdle: 'power-off' | 'exit';
  /** Where endpoints are served when that is not on this machine. */
  readonly balancers?: BalancerHosts;
}

/** Where a controller's machine is, and what it costs. */
export interface ControllerPlace {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | null;
  readonly instanceType: string;
  /** US dollars. */
  readonly hourlyUsd: number;
}

/** Where a controller is and what it costs, for people. */
export function describePlace(place: ControllerPlace): string {
  return `${placeName(place)} (${place.instanceType}, ${hourlyPrice(place.hourlyUsd)})`;
}
