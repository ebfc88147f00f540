import type { ControllerPlace } from '../domain/controller-host.ts';
import type { Config } from '../domain/config.ts';
import { hoursPerMonth } from '../domain/placement/plan.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import { planPlacement } from '../provision/placement-plan.ts';
import type { Places } from '../provision/places.ts';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { ControllerRecord } from './controller-record.ts';
import { choosePlace, wishOf } from './elsewhere.ts';

/** Where the controller is or would be, and what it is given. Plain data. */
export interface ControllerPlan {
  readonly place: { readonly provider: string; readonly region: string; readonly zone: string | null; readonly instanceType: string };
  /** US dollars for its machine while it runs; nothing is added to the bill when it is there already. */
  readonly hourlyUsd: number;
  readonly monthlyUsd: number;
  /** Whether it would have to be brought up. */
  readonly isNew: boolean;
  /** What would be copied to it so that it can use the places, one line each. */
  readonly given: readonly string[];
  /** A sentence when the configuration asks for something else than there is: it holds for the next one. */
  readonly note: string | null;
}

/** What planning needs. */
export interface ControllerPlanDeps {
  readonly places: Places;
  readonly config: () => Promise<Config>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The controller that there is, or the one that the next service would bring up; undefined when that is on this machine. Nothing is started. */
export async function planController(
  record: ControllerRecord | undefined,
  near: ResourceAlternatives,
  deps: ControllerPlanDeps,
): Promise<ControllerPlan | undefined> {
  if (record !== undefined && record.place !== null) {
    const isAsWished = wishOf(await deps.config()) === record.wished;
    const note = 'serve.controller.resources has changed: that holds for the next controller, after: svc controller down';
    return planOfRecorded(record.place, isAsWished ? null : note);
  }
  const choice = await choosePlace(deps, near);
  return choice.kind === 'here' ? undefined : planNew(choice.alternatives, deps);
}

/** A controller that there is, at the place that is recorded of it. */
export function planOfRecorded(recorded: ControllerPlace, note: string | null): ControllerPlan {
  const { provider, region, zone, instanceType, hourlyUsd } = recorded;
  return {
    place: { provider, region, zone, instanceType },
    hourlyUsd,
    monthlyUsd: hourlyUsd * hoursPerMonth,
    isNew: false,
    given: [],
    note,
  };
}

async function planNew(alternatives: ResourceAlternatives, { places, clock, signal }: ControllerPlanDeps): Promise<ControllerPlan> {
  const states = await places.states();
  const plan = await planPlacement({ alternatives, replicas: 1, places: states, clock, explain: false, signal });
  const chosen = plan.offers.find(({ verdict }) => verdict === 'chosen');
  if (chosen === undefined) throw noMachine(plan.notes);
  const { provider, region, zone, instanceType, hourlyUsd, monthlyUsd } = chosen;
  const given: string[] = [];
  for (const place of states) {
    // Where its home will be is not known yet, and does not matter for what it is given.
    const credentials = await place.provider?.credentials?.({ provider, home: '/' }, { signal });
    if (credentials !== undefined) given.push(credentials.summary);
  }
  return { place: { provider, region, zone, instanceType }, hourlyUsd, monthlyUsd, isNew: true, given, note: null };
}

/** The user asked for a service, and hears of a machine that no file of theirs may name: which one has to be said. */
function noMachine(reasons: readonly string[]): SvcError {
  const lines = reasons.map((reason) => `  ${reason}`).join('\n');
  return new SvcError('SVC_NO_PLACE', `No enabled place has a machine for the controller, which looks after services.\n${lines}`, {
    hint: 'Say what it is to be in ~/.svc/config.yaml, for instance on this machine: serve: {controller: {resources: {infra: local}}}; docs/controller.md',
  });
}

/** What is to be said of a controller that runs on this machine: nothing, unless the configuration wants the next one elsewhere. */
export async function planWhileHere(config: () => Promise<Config>): Promise<ControllerPlan | undefined> {
  const { resources } = (await config()).serve.controller;
  if (resources === undefined || resources.choices.every(({ cloud }) => cloud === 'local')) return undefined;
  return {
    place: { provider: 'local', region: 'local', zone: null, instanceType: 'this computer' },
    hourlyUsd: 0,
    monthlyUsd: 0,
    isNew: false,
    given: [],
    note: 'serve.controller.resources asks for another machine: that holds for the next controller, when all services were taken down, after: svc controller stop',
  };
}
