import type { ControllerPlace } from '../domain/controller-host.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import { assertMachineId, type MachineId, type MachineSpec, type MachineStatus, type Offer, type Provider } from '../providers/provider.ts';
import { obtainMachine } from '../provision/acquire-machine.ts';
import { waitUntilRunning } from '../provision/machine.ts';
import { describeStep } from '../provision/search-steps.ts';
import { PlacementHistory } from '../provision/placement-history.ts';
import type { Places } from '../provision/places.ts';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { ControllerRecord } from './controller-record.ts';

/** What getting at the machine of a controller needs. */
export interface MachineDeps {
  readonly places: Places;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
  /** Changes the record on disk. */
  readonly note: (change: Partial<ControllerRecord>) => ControllerRecord;
}

/** Endpoints' ports: the controller gives them out from the first on, and opens no others to the world. */
const endpointPorts: readonly number[] = Array.from({ length: 20 }, (_, index) => 30_001 + index);

/** A machine of a controller that runs. */
export interface ControllerMachine {
  readonly provider: Provider;
  readonly id: MachineId;
  readonly status: Extract<MachineStatus, { readonly state: 'running' }>;
  readonly place: ControllerPlace;
}

/**
 * The machine of the controller, running: the one that is recorded, started when it was stopped, or a new one. What is asked for is recorded before.
 * Throws SVC_MACHINE_LOST when the recorded one is gone, as what it knew of services is gone with it.
 */
export async function controllerMachine(
  record: ControllerRecord,
  alternatives: ResourceAlternatives,
  deps: MachineDeps,
): Promise<ControllerMachine> {
  const known = await knownMachine(record, deps);
  const { provider, id, place } = known ?? (await newMachine(record, alternatives, deps));
  const status = await running(provider, id, deps);
  return { provider, id, status, place };
}

/** How the recorded machine is; undefined when none was given yet. */
export async function machineStatus(
  record: ControllerRecord,
  { places, signal }: Pick<MachineDeps, 'places' | 'signal'>,
): Promise<MachineStatus | undefined> {
  if (record.place === null || record.machineId === null) return undefined;
  const provider = await places.provider(record.place.provider);
  assertMachineId(record.machineId);
  return (await provider.inspect([record.machineId], { signal })).get(record.machineId);
}

async function knownMachine(
  record: ControllerRecord,
  { places, signal, note }: MachineDeps,
): Promise<{ readonly provider: Provider; readonly id: MachineId; readonly place: ControllerPlace } | undefined> {
  const { place, machineId } = record;
  if (place === null) return undefined;
  const provider = await places.provider(place.provider);
  if (machineId !== null) {
    assertMachineId(machineId);
    return { provider, id: machineId, place };
  }
  // The place may have accepted before its answer was recorded.
  const [found] = await provider.list({ 'svc-controller': record.key }, { signal });
  if (found === undefined) return undefined;
  note({ machineId: found.id });
  return { provider, id: found.id, place };
}

async function newMachine(
  record: ControllerRecord,
  alternatives: ResourceAlternatives,
  deps: MachineDeps,
): Promise<{ readonly provider: Provider; readonly id: MachineId; readonly place: ControllerPlace }> {
  const { places, clock, signal, onStep, note } = deps;
  const history = new PlacementHistory();
  const background = new AbortController();
  const { provider, machineId, offer } = await obtainMachine(
    {
      alternatives,
      places: () => places.states(),
      history,
      occupied: () => [],
      spec: ({ alternative }) => machineSpec(record.key, alternatives, alternative),
      key: record.key,
      clock,
      step: async (step) => {
        if (step.type !== 'detail') onStep(describeStep(step));
        if (step.type === 'asking') note({ place: placeOf(step.offer) });
      },
      background: background.signal,
    },
    undefined,
    signal,
  );
  const place = placeOf(offer);
  note({ place, machineId });
  // What other places gave besides is given back before this command may end.
  while (history.isBusy && !signal.aborted) await clock.sleep(givingBackPollMs, signal);
  background.abort();
  return { provider, id: machineId, place };
}

const givingBackPollMs = 200;

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
    placeConfig: {},
    role: 'controller',
  };
}

function placeOf({ provider, region, zone, instanceType, hourlyUsd }: Pick<Offer, keyof ControllerPlace>): ControllerPlace {
  return { provider, region, zone: zone ?? null, instanceType, hourlyUsd };
}

async function running(
  provider: Provider,
  id: MachineId,
  { clock, signal, onStep }: MachineDeps,
): Promise<Extract<MachineStatus, { readonly state: 'running' }>> {
  const look = async (): Promise<MachineStatus> =>
    (await provider.inspect([id], { signal })).get(id) ?? { state: 'gone', reason: 'unknown' };
  let status = await look();
  if (status.state === 'stopped') {
    onStep('Starting the machine of the controller');
    await provider.start(id, { signal });
  }
  if (status.state !== 'running' && status.state !== 'gone') {
    await waitUntilRunning(provider, id, clock, signal, { limitMs: startLimitMs });
    status = await look();
  }
  if (status.state === 'running') return status;
  throw lostMachine(provider, id);
}

/** A machine may take so long to come up, ms. */
const startLimitMs = 900_000;

/** That the controller's machine is gone, and what can be done. */
export function lostMachine(provider: Pick<Provider, 'name'>, id: string): SvcError {
  return new SvcError(
    'SVC_MACHINE_LOST',
    `The machine of the controller, ${id} of ${provider.name}, is gone, and with it what it knew of services.`,
    {
      hint: 'To remove what its services left in all places, and begin anew: svc controller down --purge',
    },
  );
}
