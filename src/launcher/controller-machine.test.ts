import { expect, test } from 'vitest';
import { aControllerRecord, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledProvider, providersOf, statesOf } from '../../test/support/providers.ts';
import { FakeCloud } from '../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { MachineId, MachineStatus } from '../providers/provider.ts';
import { seededRandom } from '../shared/random.ts';
import { controllerMachine, planMachine } from './controller-machine.ts';
import type { ControllerRecord } from './controller-record.ts';

const offer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 0.2 });

const alternatives = { order: 'any', choices: [someResources({ diskSizeGb: 200, labels: { team: 'ml' } })] } as const;

const fresh = aControllerRecord();

/** A provider whose machines can be stopped and started again. */
class StoppingProvider extends FakeProvider {
  readonly stopped = new Set<MachineId>();
  starts = 0;

  override async inspect(...[ids, options]: Parameters<FakeProvider['inspect']>): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const statuses = await super.inspect(ids, options);
    return new Map([...statuses].map(([id, status]) => [id, this.stopped.has(id) ? { state: 'stopped' } : status]));
  }

  async start(id?: MachineId): Promise<void> {
    this.starts += 1;
    if (id !== undefined) this.stopped.delete(id);
  }
}

function aWorld() {
  const clock = new FakeClock();
  const fakeProvider = new FakeCloud(clock, seededRandom(1), [offer]);
  const provider = new StoppingProvider(fakeProvider);
  let record = fresh;
  const steps: string[] = [];
  const bringUp = async (from: ControllerRecord = record) => {
    record = from;
    const deps = {
      providers: providersOf(provider),
      clock,
      signal: new AbortController().signal,
      onStep: (text: string) => void steps.push(text),
      patchRecord: (change: Partial<ControllerRecord>) => (record = { ...record, ...change }),
    };
    let found: Awaited<ReturnType<typeof controllerMachine>> | undefined;
    let failure: unknown;
    controllerMachine(from, alternatives, deps).then(
      (machine) => (found = machine),
      (error: unknown) => (failure = error),
    );
    await clock.advanceUntil(() => found !== undefined || failure !== undefined, 1_200_000, 200);
    if (found === undefined) throw failure;
    return found;
  };
  return { clock, fakeProvider, provider, steps, bringUp, record: () => record };
}

test('a new machine is recorded, tagged with its key, and opens endpoint ports publicly', async () => {
  const { fakeProvider, bringUp, record } = aWorld();
  const machine = await bringUp();
  expect(record()).toMatchObject({ machineId: machine.id, machine: { provider: 'fake', region: 'r1', hourlyUsd: 0.2 } });
  const [made] = fakeProvider.living;
  expect(fakeProvider.living).toHaveLength(1);
  expect(made?.spec).toMatchObject({ role: 'controller', diskSizeGb: 200, labels: { team: 'ml' }, clients: ['0.0.0.0/0', '::/0'] });
  expect(made?.spec.ports.slice(0, 2)).toEqual([30_001, 30_002]);
  expect(made?.tags).toMatchObject({ 'svc-controller': 'c0ffee' });
});

test('a slow provider that the resources do not name does not delay the error', async () => {
  const { clock, provider } = aWorld();
  const slow = { ...aDisabledProvider('aws', 'answers slowly'), late: new Promise<undefined>(() => undefined) };
  const providers = { ...providersOf(provider), states: () => Promise.resolve([...statesOf(provider), slow]) };
  const impossible = { order: 'any', choices: [someResources({ cloud: 'fake', cpus: { value: 5_000, atLeast: true } })] } as const;
  const planning = planMachine(impossible, { providers, clock, signal: new AbortController().signal });
  await expect(planning).rejects.toMatchObject({ code: 'SVC_NO_PLACE' });
});

test('a machine created before its answer was recorded is reused', async () => {
  const { fakeProvider, bringUp, record } = aWorld();
  const first = await bringUp();
  const again = await bringUp({ ...record(), machineId: null });
  expect(again.id).toBe(first.id);
  expect(fakeProvider.machines.size).toBe(1);
});

test('a stopped machine is started again and keeps its id', async () => {
  const { fakeProvider, provider, steps, bringUp } = aWorld();
  const { id } = await bringUp();
  provider.stopped.add(id);
  expect((await bringUp()).id).toBe(id);
  expect({ starts: provider.starts, machines: fakeProvider.machines.size }).toEqual({ starts: 1, machines: 1 });
  expect(steps).toContain('Starting the machine of the controller');
});

test('a lost machine is an error, not a reason to create another', async () => {
  const { fakeProvider, bringUp } = aWorld();
  const { id } = await bringUp();
  fakeProvider.machines.get(id)?.end('deleted');
  await expect(bringUp()).rejects.toMatchObject({ code: 'SVC_MACHINE_LOST', hint: expect.stringContaining('svc controller down --purge') });
  expect(fakeProvider.machines.size).toBe(1);
});
