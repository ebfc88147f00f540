import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { aControllerRecord, aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledPlace, statesOf } from '../../test/support/places.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { defaultConfig } from '../domain/config.ts';
import { FakePlace } from '../providers/fake/fake-place.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { Provider } from '../providers/provider.ts';
import type { Places } from '../provision/places.ts';
import { SvcError } from '../shared/errors.ts';
import { homePaths } from '../shared/paths.ts';
import { seededRandom } from '../shared/random.ts';
import { writeControllerRecord } from './controller-record.ts';
import { removeElsewhere } from './elsewhere.ts';
import type { LauncherDeps } from './launcher-deps.ts';

const offer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 0.2 });

/** Hosts of which the one with the controller can fail to answer. */
class Rack extends FakeProvider {
  fault: SvcError | undefined;

  override list(...[tags, options]: Parameters<FakeProvider['list']>): ReturnType<FakeProvider['list']> {
    return this.fault !== undefined && 'svc-controller' in tags ? Promise.reject(this.fault) : super.list(tags, options);
  }
}

/** A cloud that holds on to what machines used, twice. */
class Cloud extends FakeProvider {
  refusals = 2;

  override async release(...[owner, options]: Parameters<FakeProvider['release']>): Promise<void> {
    this.refusals -= 1;
    if (this.refusals >= 0) throw new SvcError('SVC_PLACE_FAILED', 'still used');
    return super.release(owner, options);
  }
}

/** A controller on a rack that launched a replica in a cloud whose login has expired since, beside somebody else's. */
async function withController(
  use: (world: {
    rack: Rack;
    cloud: Cloud;
    clouds: FakePlace;
    remove: (purge: boolean) => Promise<string | undefined>;
    isRecorded: () => boolean;
  }) => Promise<void>,
): Promise<void> {
  await withTempHome(async (home) => {
    const clock = new FakeClock();
    const [racks, clouds] = [1, 2].map((seed) => new FakePlace(clock, seededRandom(seed), [offer]));
    if (racks === undefined || clouds === undefined) throw new Error('no places');
    const [rack, cloud] = [new Rack(racks), new Cloud(clouds)];
    for (const [key, owner] of [
      ['a', 'c0ffee'],
      ['b', 'another'],
    ] as const)
      await cloud.create(offer, aMachineSpec({ tags: { 'svc-owner': owner, 'svc-service-key': key, 'svc-key': key } }), key, {});
    const named: Readonly<Record<string, Provider>> = { rack, cloud };
    const places: Places = {
      provider: (name) => Promise.resolve(named[name] ?? rack),
      providers: () => Promise.resolve([rack]),
      states: () => Promise.resolve([...statesOf(rack).map((state) => ({ ...state, name: 'rack' })), aDisabledPlace('cloud', 'expired')]),
    };
    const paths = homePaths(home, 0);
    const record = aControllerRecord({
      place: { provider: 'rack', region: 'r1', zone: null, instanceType: 'small', hourlyUsd: 0 },
      machineId: 'rack/box/1',
      program: 'p',
      boot: 'cron',
      socket: '/home/u/controller.sock',
      publicHost: 'box',
      wished: JSON.stringify({ order: 'any', choices: [someResources()] }),
    });
    writeControllerRecord(paths.controllerRecord, record);
    const deps: LauncherDeps = {
      paths,
      places,
      config: () => Promise.resolve(defaultConfig),
      clock,
      signal: new AbortController().signal,
      onStep: () => undefined,
    };
    const remove = async (purge: boolean): Promise<string | undefined> => {
      const removing = removeElsewhere(deps, purge);
      let isOver = false;
      const over = (): void => void (isOver = true);
      removing.then(over, over);
      await clock.advanceUntil(() => isOver, 600_000, 500);
      return removing;
    };
    await use({ rack, cloud, clouds, remove, isRecorded: () => existsSync(paths.controllerRecord) });
  });
}

const away = new SvcError('SVC_SSH', 'The host does not answer.');

test('what a controller launched is removed though its own host never answers again, also in a place that seems unusable', async () => {
  await withController(async ({ rack, clouds, remove, isRecorded }) => {
    rack.fault = away;
    await expect(remove(false)).rejects.toBe(away);
    expect([isRecorded(), clouds.living.length]).toEqual([true, 2]);
    expect(await remove(true)).toBe('rack/box/1');
    expect(clouds.living.map(({ tags }) => tags['svc-owner'])).toEqual(['another']);
    expect(clouds.releases).toEqual(['a', 'c0ffee']);
    expect(isRecorded()).toBe(false);
  });
});

test('a controller is not forgotten while what it launched cannot be asked for', async () => {
  await withController(async ({ rack, cloud, remove, isRecorded }) => {
    const expired = new SvcError('SVC_CREDENTIALS', 'The login has expired.');
    cloud.list = () => Promise.reject(expired);
    await expect(remove(true)).rejects.toBe(expired);
    expect(isRecorded()).toBe(true);
    rack.fault = new SvcError('SVC_CREDENTIALS', 'It does not let us in.');
    await expect(remove(true)).rejects.toBe(rack.fault);
  });
});
