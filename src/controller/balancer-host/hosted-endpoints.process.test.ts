import { expect, test } from 'vitest';
import { aService, aVersion } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { anEvent } from '../../../test/support/stores.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { HostedState } from '../../domain/balancer-host.ts';
import { silentHostsMs } from '../../domain/hosted-endpoint.ts';
import type { ServiceRecord } from '../../store/records.ts';
import { openStore } from '../../store/open-store.ts';
import { HostedEndpoints } from './hosted-endpoints.ts';

interface World {
  readonly clock: FakeClock;
  readonly endpoints: HostedEndpoints;
  readonly say: (...states: readonly (HostedState | undefined)[]) => void;
  /** What is recorded after a look, and whether the look says that something changed. */
  readonly look: () => Promise<Pick<ServiceRecord, 'state' | 'processesFailed' | 'reason'> & { readonly changed: number }>;
  readonly causes: () => Promise<readonly string[]>;
  readonly takeDown: () => Promise<void>;
  otherFails: boolean;
}

async function withService(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const store = await openStore({ path: `${dir}/state.db`, database: undefined, clock });
    try {
      await store.services.add(aService({ state: 'READY' }), aVersion(), anEvent(), 16);
      let states: readonly (HostedState | undefined)[] = [];
      const at = () => states.map((state, index) => ({ member: { name: `host-${index + 1}`, host: 'h', port: 1 }, state }));
      const current = async (): Promise<ServiceRecord> => {
        const [service] = await store.services.list();
        if (service === undefined) throw new Error('there is one');
        return service;
      };
      const world: World = {
        clock,
        otherFails: false,
        endpoints: new HostedEndpoints({ store, clock, hosts: { at }, hasOtherFailure: () => world.otherFails }),
        say: (...now) => void (states = now),
        async look() {
          const changed = (await world.endpoints.look(await store.services.list())).length;
          const { state, processesFailed, reason } = await current();
          return { changed, state, processesFailed, reason };
        },
        causes: async () => (await store.events.list({ subject: 'chat' })).slice(1).map(({ cause }) => cause),
        takeDown: async () => void (await store.services.update(await current(), { desired: 'down' }, anEvent())),
      };
      await use(world);
    } finally {
      await store.close();
    }
  });
}

test('a service that fails at every balancer host says so once, and is well again when one serves it', () =>
  withService(async ({ say, look, causes }) => {
    say('listening', 'failing');
    expect(await look()).toMatchObject({ changed: 0, state: 'READY', processesFailed: false });
    say('failing', 'failing');
    const failed = { state: 'CONTROLLER_FAILED', processesFailed: true, reason: expect.stringContaining('keeps dying at host-1, host-2') };
    expect(await look()).toMatchObject({ changed: 1, ...failed });
    expect(await look()).toMatchObject({ changed: 0, ...failed });
    say('failing', 'starting');
    expect(await look()).toMatchObject({ changed: 0, ...failed });
    say('failing', 'listening');
    // What its state is now its reconciler finds out, which is woken.
    expect(await look()).toMatchObject({ changed: 1, processesFailed: false });
    expect(await causes()).toEqual(['endpoint-down', 'endpoint-up']);
  }));

test('hosts that do not answer are waited for, from when they fell silent', () =>
  withService(async ({ say, look, clock }) => {
    say(undefined, undefined);
    await look();
    await clock.advance(silentHostsMs - 1_000);
    expect(await look()).toMatchObject({ state: 'READY' });
    say('listening', undefined);
    await look();
    say(undefined, undefined);
    await look();
    await clock.advance(silentHostsMs - 1_000);
    expect(await look()).toMatchObject({ state: 'READY' });
    await clock.advance(1_000);
    expect(await look()).toMatchObject({
      state: 'CONTROLLER_FAILED',
      reason: expect.stringContaining('None of its balancer hosts answers'),
    });
  }));

test('a reconciler that keeps dying is not forgotten when the endpoint is served again', () =>
  withService(async (world) => {
    world.say('port-busy');
    await world.look();
    expect(world.endpoints.isFailing('0a1b2c3d')).toBe(true);
    world.otherFails = true;
    world.say('listening');
    expect(await world.look()).toMatchObject({ changed: 0, processesFailed: true });
    expect(world.endpoints.isFailing('0a1b2c3d')).toBe(false);
  }));

test('a service that is taken down needs nobody who serves it', () =>
  withService(async ({ say, look, takeDown }) => {
    await takeDown();
    say('failing');
    expect(await look()).toMatchObject({ changed: 0, processesFailed: false });
  }));
