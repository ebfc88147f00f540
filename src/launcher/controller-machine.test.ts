import { expect, test } from 'vitest';
import { aControllerRecord, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { placesOf } from '../../test/support/places.ts';
import { FakePlace } from '../providers/fake/fake-place.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { MachineId, MachineStatus } from '../providers/provider.ts';
import { seededRandom } from '../shared/random.ts';
import { controllerMachine } from './controller-machine.ts';
import type { ControllerRecord } from './controller-record.ts';

const offer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 0.2 });

const alternatives = { order: 'any', choices: [someResources({ diskSizeGb: 200, labels: { team: 'ml' } })] } as const;

const fresh = aControllerRecord();

/** A place whose machines can be stopped and started again. */
class StoppingProvider extends FakeProvider {
  readonly stopped = new Set<MachineId>();
  starts = 0;

  override async inspect(...[ids, options]: Parameters<FakeProvider['inspect']>): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const statuses = await super.inspect(ids, options);
    return new Map([...statuses].map(([id, status]) => [id, this.stopped.has(id) ? { state: 'stopped' } : status]));
  }

  override async start(id?: MachineId): Promise<void> {
    this.starts += 1;
    if (id !== undefined) this.stopped.delete(id);
  }
}

function aWorld() {
  const clock = new FakeClock();
  const place = new FakePlace(clock, seededRandom(1), [offer]);
  const provider = new StoppingProvider(place);
  let record = fresh;
  const steps: string[] = [];
  const bringUp = async (from: ControllerRecord = record) => {
    record = from;
    const deps = {
      places: placesOf(provider),
      clock,
      signal: new AbortController().signal,
      onStep: (text: string) => void steps.push(text),
      note: (change: Partial<ControllerRecord>) => (record = { ...record, ...change }),
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
  return { clock, place, provider, steps, bringUp, record: () => record };
}

test('a new machine is recorded with its place, opens the ports of endpoints to everybody and is found by its key', async () => {
  const { place, bringUp, record } = aWorld();
  const machine = await bringUp();
  expect(record()).toMatchObject({ machineId: machine.id, place: { provider: 'fake', region: 'r1', hourlyUsd: 0.2 } });
  const [made] = place.living;
  expect(place.living).toHaveLength(1);
  expect(made?.spec).toMatchObject({ role: 'controller', diskSizeGb: 200, labels: { team: 'ml' }, clients: ['0.0.0.0/0', '::/0'] });
  expect(made?.spec.ports.slice(0, 2)).toEqual([30_001, 30_002]);
  expect(made?.tags).toMatchObject({ 'svc-controller': 'c0ffee' });
});

test('a machine that was accepted before its answer was recorded is gone on with', async () => {
  const { place, bringUp, record } = aWorld();
  const first = await bringUp();
  const again = await bringUp({ ...record(), machineId: null });
  expect(again.id).toBe(first.id);
  expect(place.machines.size).toBe(1);
});

test('one that was stopped is started again, and is the same', async () => {
  const { place, provider, steps, bringUp } = aWorld();
  const { id } = await bringUp();
  provider.stopped.add(id);
  expect((await bringUp()).id).toBe(id);
  expect({ starts: provider.starts, machines: place.machines.size }).toEqual({ starts: 1, machines: 1 });
  expect(steps).toContain('Starting the machine of the controller');
});

test('one that is gone is not replaced behind the back of who had services on it', async () => {
  const { place, bringUp } = aWorld();
  const { id } = await bringUp();
  place.machines.get(id)?.end('deleted');
  await expect(bringUp()).rejects.toMatchObject({ code: 'SVC_MACHINE_LOST', hint: expect.stringContaining('svc controller down --purge') });
  expect(place.machines.size).toBe(1);
});
