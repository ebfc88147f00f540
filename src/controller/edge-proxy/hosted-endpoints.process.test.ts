import { expect, test } from 'vitest';
import { aService, aVersion } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { anEvent } from '../../../test/support/stores.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { ProxiedServiceState } from '../../domain/edge-proxy/edge-proxy.ts';
import { silentProxiesMs } from '../../domain/edge-proxy/proxied-endpoint.ts';
import type { ServiceRecord } from '../../domain/records.ts';
import { openStore } from '../../store/open-store.ts';
import { HostedEndpoints } from './hosted-endpoints.ts';

interface World {
  readonly clock: FakeClock;
  readonly endpoints: HostedEndpoints;
  readonly say: (...states: readonly (ProxiedServiceState | undefined)[]) => void;
  /** The record after a check, and whether the check reports a change. */
  readonly check: () => Promise<Pick<ServiceRecord, 'state' | 'processesFailed' | 'reason'> & { readonly changed: number }>;
  readonly causes: () => Promise<readonly string[]>;
  readonly terminate: () => Promise<void>;
  otherFails: boolean;
}

async function withService(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const store = await openStore({ path: `${dir}/state.db`, database: undefined, clock });
    try {
      await store.services.add(aService({ state: 'READY' }), aVersion(), anEvent(), 16);
      let states: readonly (ProxiedServiceState | undefined)[] = [];
      const at = () => states.map((state, index) => ({ member: { name: `host-${index + 1}`, host: 'h', port: 1 }, state }));
      const current = async (): Promise<ServiceRecord> => {
        const [service] = await store.services.list();
        if (service === undefined) throw new Error('there is one');
        return service;
      };
      const world: World = {
        clock,
        otherFails: false,
        endpoints: new HostedEndpoints({ store, clock, proxies: { at }, hasOtherFailure: () => world.otherFails }),
        say: (...now) => void (states = now),
        async check() {
          const changed = (await world.endpoints.checkAll(await store.services.list())).length;
          const { state, processesFailed, reason } = await current();
          return { changed, state, processesFailed, reason };
        },
        causes: async () => (await store.events.list({ subject: 'chat' })).slice(1).map(({ cause }) => cause),
        terminate: async () => void (await store.services.update(await current(), { desired: 'down' }, anEvent())),
      };
      await use(world);
    } finally {
      await store.close();
    }
  });
}

test('failure at every edge proxy is recorded once, and recovery when one serves', () =>
  withService(async ({ say, check, causes }) => {
    say('listening', 'failing');
    expect(await check()).toMatchObject({ changed: 0, state: 'READY', processesFailed: false });
    say('failing', 'failing');
    const failed = { state: 'CONTROLLER_FAILED', processesFailed: true, reason: expect.stringContaining('keeps dying at host-1, host-2') };
    expect(await check()).toMatchObject({ changed: 1, ...failed });
    expect(await check()).toMatchObject({ changed: 0, ...failed });
    say('failing', 'starting');
    expect(await check()).toMatchObject({ changed: 0, ...failed });
    say('failing', 'listening');
    // The reconciler is woken and determines the new state.
    expect(await check()).toMatchObject({ changed: 1, processesFailed: false });
    expect(await causes()).toEqual(['endpoint-down', 'endpoint-up']);
  }));

test('silent edge proxies fail the endpoint only after the limit since their last report', () =>
  withService(async ({ say, check, clock }) => {
    say(undefined, undefined);
    await check();
    await clock.advance(silentProxiesMs - 1_000);
    expect(await check()).toMatchObject({ state: 'READY' });
    say('listening', undefined);
    await check();
    say(undefined, undefined);
    await check();
    await clock.advance(silentProxiesMs - 1_000);
    expect(await check()).toMatchObject({ state: 'READY' });
    await clock.advance(1_000);
    expect(await check()).toMatchObject({
      state: 'CONTROLLER_FAILED',
      reason: expect.stringContaining('None of its edge proxies answers'),
    });
  }));

test('when the endpoint recovers, a crashing reconciler stays recorded', () =>
  withService(async (world) => {
    world.say('port-busy');
    await world.check();
    expect(world.endpoints.isFailing('0a1b2c3d')).toBe(true);
    world.otherFails = true;
    world.say('listening');
    expect(await world.check()).toMatchObject({ changed: 0, processesFailed: true });
    expect(world.endpoints.isFailing('0a1b2c3d')).toBe(false);
  }));

test('a service being terminated needs no edge proxy', () =>
  withService(async ({ say, check, terminate }) => {
    await terminate();
    say('failing');
    expect(await check()).toMatchObject({ changed: 0, processesFailed: false });
  }));
