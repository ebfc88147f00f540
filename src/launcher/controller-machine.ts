import type { ControllerMachineInfo } from '../domain/remote-controller-info.ts';
import { locationName } from '../domain/location-name.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import { assertMachineId, type MachineId, type MachineSpec, type MachineStatus, type Offer, type Provider } from '../providers/provider.ts';
import { obtainMachine } from '../provision/acquire-machine.ts';
import { waitUntilRunning } from '../provision/machine.ts';
import { describeStep } from '../provision/search-steps.ts';
import { PlacementHistory } from '../provision/placement-history.ts';
import { hasChoice, planPlacement, type PlannedOffer } from '../provision/placement-plan.ts';
import { askProviders, type Providers, type ProviderState } from '../provision/providers.ts';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { describeAlternatives } from '../spec/describe.ts';
import type { ControllerRecord } from './controller-record.ts';

/** Dependencies of access to a controller's machine. */
export interface MachineDeps {
  readonly providers: Providers;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
  readonly patchRecord: (change: Partial<ControllerRecord>) => ControllerRecord;
}

/** Ports of endpoints, assigned in this order. Only these are open to the internet. */
const endpointPorts: readonly number[] = Array.from({ length: 20 }, (_, index) => 30_001 + index);

/** The running machine of a controller. */
export interface RunningControllerMachine {
  readonly provider: Provider;
  readonly id: MachineId;
  readonly status: Extract<MachineStatus, { readonly state: 'running' }>;
  readonly machine: ControllerMachineInfo;
}

/**
 * The recorded machine, started if it was stopped, or a new one. Each request is recorded before it is sent. Throws
 * SVC_MACHINE_LOST when the recorded machine is gone: its data about services is lost too.
 */
export async function controllerMachine(
  record: ControllerRecord,
  alternatives: ResourceAlternatives,
  deps: MachineDeps,
): Promise<RunningControllerMachine> {
  const known = await knownMachine(record, deps);
  const { provider, id, machine } = known ?? (await newMachine(record, alternatives, deps));
  const status = await running(provider, id, deps);
  return { provider, id, status, machine };
}

/** Status of the recorded machine; undefined when no provider has returned one yet. */
export async function machineStatus(
  record: ControllerRecord,
  { providers, signal }: Pick<MachineDeps, 'providers' | 'signal'>,
): Promise<MachineStatus | undefined> {
  if (record.machine === null || record.machineId === null) return undefined;
  const provider = await providers.provider(record.machine.provider);
  assertMachineId(record.machineId);
  return (await provider.inspect([record.machineId], { signal })).get(record.machineId);
}

async function knownMachine(
  record: ControllerRecord,
  { providers, signal, patchRecord, onStep }: MachineDeps,
): Promise<{ readonly provider: Provider; readonly id: MachineId; readonly machine: ControllerMachineInfo } | undefined> {
  const { machine, machineId } = record;
  if (machine === null) return undefined;
  const provider = await providers.provider(machine.provider);
  if (machineId !== null) {
    assertMachineId(machineId);
    return { provider, id: machineId, machine };
  }
  // The provider may have created a machine without its answer being recorded.
  onStep(`Looking for the controller's machine at ${locationName(machine)}`);
  const [found] = await provider.list({ 'svc-controller': record.key }, { signal });
  if (found === undefined) return undefined;
  patchRecord({ machineId: found.id });
  return { provider, id: found.id, machine };
}

/**
 * The first offer to try for a new machine, and all providers' states. Throws SVC_NO_PLACE with each provider's reason
 * when there is none: a search would never end. Waits for slow providers only where the others have no offer.
 */
export async function planMachine(
  alternatives: ResourceAlternatives,
  { providers, clock, signal, onStep }: Pick<MachineDeps, 'providers' | 'clock' | 'signal'> & Partial<Pick<MachineDeps, 'onStep'>>,
): Promise<{ readonly chosen: PlannedOffer; readonly states: readonly ProviderState[] }> {
  const { providers: states, answer: planned } = await askProviders(
    () => providers.states(),
    (some) => planPlacement({ alternatives, replicas: 1, providers: some, clock, explain: false, signal }),
    // A slow provider outside the requested resources cannot change the plan.
    (plan, some) => hasChoice(plan) || !some.some((state) => state.late !== undefined && mayUse(alternatives, state)),
    { onWait: onStep, signal },
  );
  const chosen = planned.offers.find(({ verdict }) => verdict === 'chosen');
  if (chosen === undefined) throw noMachine(alternatives, planned.notes);
  return { chosen, states };
}

function mayUse({ choices }: ResourceAlternatives, { name }: ProviderState): boolean {
  return choices.some(({ cloud }) => cloud === undefined || cloud === name);
}

/** Names the missing machine: the user asked for a service, and may have configured no machine for the controller. */
function noMachine(alternatives: ResourceAlternatives, reasons: readonly string[]): SvcError {
  const lines = reasons.map((reason) => `  ${reason}`).join('\n');
  return new SvcError(
    'SVC_NO_PLACE',
    `No provider has a machine for the controller, which looks after services (asked for: ${describeAlternatives(alternatives)}).\n${lines}`,
    {
      hint: 'Say what it is to be in ~/.svc/config.yaml, for instance on this machine: serve: {controller: {resources: {infra: local}}}; docs/controller.md. What providers have: svc offers; which can be used: svc check',
    },
  );
}

/** A machine was requested without a recorded answer, and the configuration no longer asks for one. */
function unrecorded({ machine }: ControllerRecord): SvcError {
  const where = machine === null ? '' : ` at ${machine.provider}/${machine.region}`;
  return new SvcError(
    'SVC_CONTROLLER_UNREACHABLE',
    `An earlier command asked for a machine for the controller${where} and did not finish. There is no such machine, and config.yaml asks for none.`,
    { hint: 'To remove what may be left of it: svc controller down' },
  );
}

async function newMachine(
  record: ControllerRecord,
  alternatives: ResourceAlternatives,
  deps: MachineDeps,
): Promise<{ readonly provider: Provider; readonly id: MachineId; readonly machine: ControllerMachineInfo }> {
  const { providers, clock, signal, onStep, patchRecord } = deps;
  if (alternatives.choices.length === 0) throw unrecorded(record);
  await planMachine(alternatives, deps);
  const history = new PlacementHistory();
  const background = new AbortController();
  const { provider, machineId, offer } = await obtainMachine(
    {
      alternatives,
      providers: () => providers.states(),
      history,
      occupied: () => [],
      spec: ({ alternative }) => machineSpec(record.key, alternatives, alternative),
      key: record.key,
      clock,
      step: async (step) => {
        if (step.type !== 'detail') onStep(describeStep(step));
        if (step.type === 'asking') patchRecord({ machine: machineOf(step.offer) });
      },
      background: background.signal,
    },
    undefined,
    signal,
  );
  const machine = machineOf(offer);
  patchRecord({ machine, machineId });
  // Machines of other providers must be terminated before this command ends.
  while (history.isBusy && !signal.aborted) await clock.sleep(releasePollMs, signal);
  background.abort();
  return { provider, id: machineId, machine };
}

const releasePollMs = 200;

function machineSpec(key: string, alternatives: ResourceAlternatives, alternative: number): MachineSpec {
  const resources = alternatives.choices[alternative];
  return {
    tags: { 'svc-controller': key, 'svc-service-key': key },
    labels: resources?.labels ?? {},
    ports: endpointPorts,
    clients: ['0.0.0.0/0', '::/0'],
    diskSizeGb: resources?.diskSizeGb ?? 0,
    diskTier: resources?.diskTier,
    imageId: resources?.imageId,
    nodes: 1,
    volumes: {},
    providerConfig: {},
    role: 'controller',
  };
}

function machineOf({ provider, region, zone, instanceType, hourlyUsd }: Pick<Offer, keyof ControllerMachineInfo>): ControllerMachineInfo {
  return { provider, region, zone: zone ?? null, instanceType, hourlyUsd };
}

async function running(
  provider: Provider,
  id: MachineId,
  { clock, signal, onStep }: MachineDeps,
): Promise<Extract<MachineStatus, { readonly state: 'running' }>> {
  const inspect = async (): Promise<MachineStatus> =>
    (await provider.inspect([id], { signal })).get(id) ?? { state: 'gone', reason: 'unknown' };
  let status = await inspect();
  if (status.state === 'stopped') {
    onStep('Starting the machine of the controller');
    if (provider.start === undefined) throw new SvcError('SVC_NOT_SUPPORTED', `Machines of ${provider.name} cannot be started again.`);
    await provider.start(id, { signal });
  }
  if (status.state !== 'running' && status.state !== 'gone') {
    onStep(`Waiting for the machine of the controller, ${id}, to run`);
    await waitUntilRunning(provider, id, clock, signal, { limitMs: startLimitMs });
    status = await inspect();
  }
  if (status.state === 'running') return status;
  throw lostMachine(provider, id);
}

const startLimitMs = 900_000;

/** The error for a lost controller machine, with possible actions. */
export function lostMachine(provider: Pick<Provider, 'name'>, id: string): SvcError {
  return new SvcError(
    'SVC_MACHINE_LOST',
    `The machine of the controller, ${id} of ${provider.name}, is gone, and with it what it knew of services.`,
    {
      hint: 'To remove what its services left at all providers, and start again: svc controller down --purge',
    },
  );
}
