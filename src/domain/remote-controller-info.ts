import type { EdgeProxies } from './edge-proxy/edge-proxy.ts';
import { locationName } from './location-name.ts';
import { hourlyPrice } from './price.ts';

/** Facts about the machine of a remote controller. A local controller needs none. */
export interface RemoteControllerInfo {
  /** Value of the tag `svc-owner` on the controller's machines, which finds them after the controller is lost. */
  readonly key: string;
  /** Name or address at which clients reach endpoints. */
  readonly publicHost: string;
  /** From which the controller connects to replicas. Machines accept connections from these addresses only. */
  readonly addresses: readonly string[];
  readonly machine: ControllerMachineInfo;
  /** Action when the controller has been idle: switch off the machine, or end only the controller. */
  readonly whenIdle: 'power-off' | 'exit';
  /** Edge proxies that serve the endpoints; absent when the endpoints are on this machine. */
  readonly balancers?: EdgeProxies;
}

/** Location of a controller's machine, and its price. */
export interface ControllerMachineInfo {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | null;
  readonly instanceType: string;
  /** US dollars per hour. */
  readonly hourlyUsd: number;
}

/** Location and price of a controller, as text for users. */
export function describeMachine(machine: ControllerMachineInfo): string {
  return `${locationName(machine)} (${machine.instanceType}, ${hourlyPrice(machine.hourlyUsd)})`;
}
