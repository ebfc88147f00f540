import { existsSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { aControllerRecord, aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledProvider, statesOf } from '../../test/support/providers.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { defaultConfig } from '../domain/config.ts';
import { FakeCloud } from '../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { Provider } from '../providers/provider.ts';
import type { Providers } from '../provision/providers.ts';
import { SvcError } from '../shared/errors.ts';
import { homePaths } from '../shared/paths.ts';
import { seededRandom } from '../shared/random.ts';
import { identifyProcess } from '../shared/system/process-identity.ts';
import { readControllerRecord, writeControllerRecord } from './controller-record.ts';
import { chooseControllerMachine, ensureRemoteController, removeRemoteController } from './remote-controller.ts';
import { dropUnrequestedRecord, type LauncherDeps } from './launcher-deps.ts';

const offer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 0.2 });

/** SSH hosts of which the controller's one can fail to answer. */
class Rack extends FakeProvider {
  fault: SvcError | undefined;

  override list(...[tags, options]: Parameters<FakeProvider['list']>): ReturnType<FakeProvider['list']> {
    return this.fault !== undefined && 'svc-controller' in tags ? Promise.reject(this.fault) : super.list(tags, options);
  }
}

/** A cloud that refuses twice to release resources of terminated machines. */
class Cloud extends FakeProvider {
  refusals = 2;

  override async release(...[owner, options]: Parameters<FakeProvider['release']>): Promise<void> {
    this.refusals -= 1;
    if (this.refusals >= 0) throw new SvcError('SVC_PLACE_FAILED', 'still used');
    return super.release(owner, options);
  }
}

/**
 * A controller on an SSH host, with a replica in a cloud whose login has expired since. The cloud also has a machine of
 * another owner.
 */
async function withController(
  use: (world: {
    rack: Rack;
    cloud: Cloud;
    clouds: FakeCloud;
    remove: (purge: boolean) => Promise<string | undefined>;
    isRecorded: () => boolean;
  }) => Promise<void>,
): Promise<void> {
  await withTempHome(async (home) => {
    const clock = new FakeClock();
    const [racks, clouds] = [1, 2].map((seed) => new FakeCloud(clock, seededRandom(seed), [offer]));
    if (racks === undefined || clouds === undefined) throw new Error('no providers');
    const [rack, cloud] = [new Rack(racks), new Cloud(clouds)];
    for (const [key, owner] of [
      ['a', 'c0ffee'],
      ['b', 'another'],
    ] as const)
      await cloud.create(offer, aMachineSpec({ tags: { 'svc-owner': owner, 'svc-service-key': key, 'svc-key': key } }), key, {});
    const named: Readonly<Record<string, Provider>> = { rack, cloud };
    const providers: Providers = {
      provider: (name) => Promise.resolve(named[name] ?? rack),
      providers: () => Promise.resolve([rack]),
      states: () =>
        Promise.resolve([...statesOf(rack).map((state) => ({ ...state, name: 'rack' })), aDisabledProvider('cloud', 'expired')]),
    };
    const paths = homePaths(home, 0);
    const record = aControllerRecord({
      machine: { provider: 'rack', region: 'r1', zone: null, instanceType: 'small', hourlyUsd: 0 },
      machineId: 'rack/box/1',
      program: 'p',
      boot: 'cron',
      socket: '/home/u/controller.sock',
      publicHost: 'box',
      requestedResources: JSON.stringify({ order: 'any', choices: [someResources()] }),
    });
    writeControllerRecord(paths.controllerRecord, record);
    const deps: LauncherDeps = {
      paths,
      providers,
      config: () => Promise.resolve(defaultConfig),
      clock,
      signal: new AbortController().signal,
      onStep: () => undefined,
    };
    const remove = async (purge: boolean): Promise<string | undefined> => {
      const removing = removeRemoteController(deps, purge);
      let isOver = false;
      const over = (): void => void (isOver = true);
      removing.then(over, over);
      await clock.advanceUntil(() => isOver, 600_000, 500);
      return removing;
    };
    await use({ rack, cloud, clouds, remove, isRecorded: () => existsSync(paths.controllerRecord) });
  });
}

const unreachable = new SvcError('SVC_SSH', 'The host does not answer.');

test("purge removes launched machines although the controller's host does not answer", async () => {
  await withController(async ({ rack, clouds, remove, isRecorded }) => {
    rack.fault = unreachable;
    await expect(remove(false)).rejects.toBe(unreachable);
    expect([isRecorded(), clouds.living.length]).toEqual([true, 2]);
    expect(await remove(true)).toBe('rack/box/1');
    expect(clouds.living.map(({ tags }) => tags['svc-owner'])).toEqual(['another']);
    expect(clouds.releases).toEqual(['a', 'c0ffee']);
    expect(isRecorded()).toBe(false);
  });
});

test('purge keeps the record while a provider cannot list machines', async () => {
  await withController(async ({ rack, cloud, remove, isRecorded }) => {
    const expired = new SvcError('SVC_CREDENTIALS', 'The login has expired.');
    cloud.list = () => Promise.reject(expired);
    await expect(remove(true)).rejects.toMatchObject({
      code: 'SVC_CLEANUP_FAILED',
      message: 'The provider cloud could not be asked for machines: The login has expired.',
    });
    expect(isRecorded()).toBe(true);
    rack.fault = new SvcError('SVC_CREDENTIALS', 'It does not let us in.');
    await expect(remove(true)).rejects.toBe(rack.fault);
  });
});

/** A home with a provider of one machine with 4 CPUs. Its other provider has no credentials. */
async function withHome(use: (world: { fakeProvider: FakeCloud; deps: LauncherDeps; steps: string[] }) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const clock = new FakeClock();
    const fakeProvider = new FakeCloud(clock, seededRandom(1), [offer]);
    const states = [...statesOf(new FakeProvider(fakeProvider)), aDisabledProvider('aws', 'no credentials were found')];
    const steps: string[] = [];
    const deps: LauncherDeps = {
      paths: homePaths(home, 0),
      providers: {
        provider: () => Promise.resolve(new FakeProvider(fakeProvider)),
        providers: () => Promise.resolve([new FakeProvider(fakeProvider)]),
        states: () => Promise.resolve(states),
      },
      config: () => Promise.resolve(defaultConfig),
      clock,
      signal: new AbortController().signal,
      onStep: (text) => void steps.push(text),
    };
    await use({ fakeProvider, deps, steps });
  });
}

const large = { order: 'any', choices: [someResources({ cpus: { value: 64, atLeast: true } })] } as const;
const unrequested = aControllerRecord();
const requested = aControllerRecord({ machine: { provider: 'fake', region: 'r1', zone: null, instanceType: 'small', hourlyUsd: 0 } });

test.for([
  ['without an earlier request', undefined],
  ['after a command that died before any request', unrequested],
] as const)('a controller without an offer is refused at once and leaves nothing: %s', async ([, record]) => {
  await withHome(async ({ fakeProvider, deps }) => {
    if (record !== undefined) writeControllerRecord(deps.paths.controllerRecord, record);
    await expect(ensureRemoteController(large, deps)).rejects.toMatchObject({
      code: 'SVC_NO_PLACE',
      message: expect.stringMatching(
        /^No provider has .*\(asked for: 64\+ CPUs\)\.\n  fake: .*\n  aws: not enabled: no credentials were found\.$/,
      ),
      hint: expect.stringContaining('svc check'),
    });
    expect([existsSync(deps.paths.controllerRecord), existsSync(`${deps.paths.controllerRecord}.lock`)]).toEqual([false, false]);
    expect(fakeProvider.machines.size).toBe(0);
  });
});

test('the search for a requested but never created machine ends', async () => {
  await withHome(async ({ deps, steps }) => {
    writeControllerRecord(deps.paths.controllerRecord, requested);
    await expect(ensureRemoteController(large, deps)).rejects.toMatchObject({ code: 'SVC_NO_PLACE' });
    // By now the configuration asks for a local controller.
    await expect(ensureRemoteController({ order: 'any', choices: [] }, deps)).rejects.toMatchObject({
      code: 'SVC_CONTROLLER_UNREACHABLE',
      message: expect.stringContaining('at fake/r1'),
      hint: expect.stringContaining('svc controller down'),
    });
    expect(steps).toContain("Looking for the controller's machine at fake/r1");
    // The requested machine may still appear, so its key is kept.
    expect(readControllerRecord(deps.paths.controllerRecord)?.key).toBe(requested.key);
  });
});

test('a record without any request is removed, unless another command holds the lock', async () => {
  await withHome(async ({ deps: { paths } }) => {
    const lock = `${paths.controllerRecord}.lock`;
    const after = (): boolean => {
      dropUnrequestedRecord(paths);
      return existsSync(paths.controllerRecord);
    };
    writeControllerRecord(paths.controllerRecord, unrequested);
    writeFileSync(lock, JSON.stringify(identifyProcess(process.pid)));
    expect(after()).toBe(true);
    // The lock's holder has died.
    writeFileSync(lock, JSON.stringify({ ...identifyProcess(process.pid), pid: 4_194_304 }));
    expect([after(), existsSync(lock)]).toEqual([false, false]);
    writeControllerRecord(paths.controllerRecord, requested);
    expect(after()).toBe(true);
  });
});

test('the choice waits for a slow provider that can change the result', async () => {
  await withHome(async ({ deps, steps }) => {
    const late = Promise.withResolvers<undefined>();
    const slow = { ...aDisabledProvider('aws', 'answers slowly: its check did not end within 10 s; trying again'), late: late.promise };
    const fast = statesOf(new FakeProvider(new FakeCloud(deps.clock, seededRandom(1), [offer]))).map((state) => ({
      ...state,
      name: 'aws',
    }));
    let isSlow = true;
    const providers: Providers = { ...deps.providers, states: () => Promise.resolve(isSlow ? [slow] : fast) };
    const onStep = (text: string): void => {
      steps.push(text);
      isSlow = false;
      late.resolve(undefined);
    };
    expect((await chooseControllerMachine({ ...deps, providers, onStep })).kind).toBe('remote');
    expect(steps).toEqual(['Waiting for aws, which answers slowly: its check did not end within 10 s']);
  });
});
