import type { ControllerMachineInfo } from '../domain/remote-controller-info.ts';
import type { Config } from '../domain/config.ts';
import { hoursPerMonth } from '../domain/placement/plan.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import type { Providers } from '../provision/providers.ts';
import type { Clock } from '../shared/clock.ts';
import { planMachine } from './controller-machine.ts';
import type { ControllerRecord } from './controller-record.ts';
import { chooseControllerMachine, requestedResourcesOf } from './remote-controller.ts';

/** Where the controller is or would be, and what is copied to it. Plain data. */
export interface ControllerPlan {
  readonly machine: { readonly provider: string; readonly region: string; readonly zone: string | null; readonly instanceType: string };
  /** US dollars for its running machine. An existing controller adds no cost. */
  readonly hourlyUsd: number;
  readonly monthlyUsd: number;
  /** Whether a deploy would create it. */
  readonly isNew: boolean;
  /** Provider credentials that would be copied to it, one line each. */
  readonly given: readonly string[];
  /** A sentence when the configuration differs from the existing controller. */
  readonly note: string | null;
}

interface ControllerPlanDeps {
  readonly providers: Providers;
  readonly config: () => Promise<Config>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onStep?: (text: string) => void;
}

/** The existing controller, or what the next service would create; undefined: on this machine. Starts nothing. */
export async function planController(
  record: ControllerRecord | undefined,
  near: ResourceAlternatives,
  deps: ControllerPlanDeps,
): Promise<ControllerPlan | undefined> {
  if (record !== undefined && record.machine !== null) {
    const isAsRequested = requestedResourcesOf(await deps.config()) === record.requestedResources;
    const note = 'serve.controller.resources has changed: that holds for the next controller, after: svc controller down';
    return planOfRecorded(record.machine, isAsRequested ? null : note);
  }
  const choice = await chooseControllerMachine(deps, near);
  return choice.kind === 'local' ? undefined : planNew(choice.alternatives, deps);
}

/** The plan of an existing controller, at its recorded location. */
export function planOfRecorded(recorded: ControllerMachineInfo, note: string | null): ControllerPlan {
  const { provider, region, zone, instanceType, hourlyUsd } = recorded;
  return {
    machine: { provider, region, zone, instanceType },
    hourlyUsd,
    monthlyUsd: hourlyUsd * hoursPerMonth,
    isNew: false,
    given: [],
    note,
  };
}

async function planNew(alternatives: ResourceAlternatives, deps: ControllerPlanDeps): Promise<ControllerPlan> {
  const { chosen, states } = await planMachine(alternatives, deps);
  const { provider, region, zone, instanceType, hourlyUsd, monthlyUsd } = chosen;
  const given: string[] = [];
  for (const state of states) {
    // Its home's path is not known yet, and does not affect its credentials.
    const credentials = await state.provider?.credentials?.({ provider, home: '/' }, { signal: deps.signal });
    if (credentials !== undefined) given.push(credentials.summary);
  }
  return { machine: { provider, region, zone, instanceType }, hourlyUsd, monthlyUsd, isNew: true, given, note: null };
}

/** Undefined unless a local controller's configuration asks for a remote one, which applies to the next controller. */
export async function planWhileLocal(config: () => Promise<Config>): Promise<ControllerPlan | undefined> {
  const { resources } = (await config()).serve.controller;
  if (resources === undefined || resources.choices.every(({ cloud }) => cloud === 'local')) return undefined;
  return {
    machine: { provider: 'local', region: 'local', zone: null, instanceType: 'this computer' },
    hourlyUsd: 0,
    monthlyUsd: 0,
    isNew: false,
    given: [],
    note: 'serve.controller.resources asks for another machine: that holds for the next controller, when all services are terminated, after: svc controller stop',
  };
}
