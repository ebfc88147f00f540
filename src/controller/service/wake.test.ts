import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { newReplica, subjectEvent, type OfferRecord } from '../../domain/records.ts';
import type { ReplicaPolicy } from '../../domain/task.ts';

const small = { provider: 'fake', instanceType: 'small', cpus: 4, memoryGb: 16 } as const;
const offers = [anOffer({ ...small, region: 'slow', hourlyUsd: 1 }), anOffer({ ...small, region: 'quick', hourlyUsd: 2 })];
const policy = { minReplicas: 0, maxReplicas: 1, targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 20 };

/** Adds an ended replica that became ready in the region after `seconds`. */
async function addStart({ store, clock }: World, id: number, region: string, seconds: number): Promise<void> {
  const service = await store.services.get('chat');
  if (service === undefined) throw new Error('no service');
  const offer: OfferRecord = {
    provider: 'fake',
    region,
    zone: null,
    instanceType: 'small',
    resources: '',
    gpus: 0,
    spot: false,
    hourlyUsd: 1,
  };
  const times = { createdAt: 0, launchedAt: 0, firstReadyAt: seconds * 1_000, endedAt: 900_000 };
  const replica = newReplica(service, { id, key: `earlier-${id}`, state: 'TERMINATED', endCause: 'scale-down', offer, ...times });
  const event = { ...subjectEvent(service, { at: clock.now(), cause: 'added', message: '' }), replicaId: id };
  const change = { nextReplicaId: id + 1 };
  await store.services.commit(service, { change, events: [], changed: [], added: [{ replica, event }] });
}

/** The region of the machine that a request from zero gets. */
async function regionOfWake(wake: ReplicaPolicy['wake']): Promise<string | undefined> {
  let region: string | undefined;
  await withWorld(
    async (world) => {
      await addStart(world, 1, 'slow', 300);
      await addStart(world, 2, 'quick', 60);
      await world.clock.advance(5_000);
      world.balancer = { queued: 1 };
      world.arrivals(1);
      await world.untilReady(1);
      region = (await world.replicas()).at(-1)?.offer?.region;
    },
    { ...policy, wake },
    1,
    offers,
  );
  return region;
}

test('with wake: fastest, a request from zero starts a replica where the last ones were ready soonest', async () => {
  expect(await regionOfWake('fastest')).toBe('quick');
});

test('by default, a request from zero starts a replica at the cheapest location', async () => {
  expect(await regionOfWake(undefined)).toBe('slow');
});
