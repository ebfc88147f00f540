import { expect, test } from 'vitest';
import { cleanUpAwsProvider as end, smallOnAws, withAwsProvider, type AwsProviderFixture } from '../../../test/support/aws-provider.ts';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { aProviderContext } from '../../../test/support/provider-context.ts';
import { statesOf } from '../../../test/support/providers.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { obtainMachine } from '../../provision/acquire-machine.ts';
import { PlacementHistory } from '../../provision/placement-history.ts';
import { describeStep } from '../../provision/search-steps.ts';
import { AwsProvider } from './index.ts';

/**
 * Searches for a machine of any type on AWS until `count` machines were accepted and lost. Virtual time advances only
 * with the search.
 */
async function failTimes(count: number, { aws, paths }: AwsProviderFixture, clock: FakeClock) {
  const provider = new AwsProvider(aProviderContext(paths.home, { clock }), { isReady: () => Promise.resolve(true) });
  const stop = new AbortController();
  const history = new PlacementHistory();
  const lost: string[] = [];
  const requested = { ...smallOnAws, instanceType: undefined, region: undefined, cpus: { value: 2, atLeast: true } };
  const searching = obtainMachine(
    {
      alternatives: { order: 'any', choices: [someResources(requested)] },
      providers: () => Promise.resolve(statesOf(provider)),
      history,
      occupied: () => [],
      spec: () => aMachineSpec({ tags: { 'svc-service-key': 'k', 'svc-key': 'k' } }),
      key: 'k',
      clock,
      step: async (step) => {
        if (step.type === 'lost') lost.push(describeStep(step));
        await Promise.resolve();
      },
      background: stop.signal,
    },
    undefined,
    stop.signal,
  ).catch((error: unknown) => error);
  await waitFor(
    `${count} failed launches`,
    async () => {
      // A request takes real time. If virtual time advanced meanwhile, the request would look slow and the search would
      // ask further regions.
      await clock.advance(history.pending.length > 0 ? 10 : 500);
      return lost.length >= count;
    },
    { everyMs: 5, describe: () => Promise.resolve(lost) },
  );
  stop.abort();
  await searching;
  const launchedAt = aws.control.instances.map((instance) => instance.launchedAt).toSorted((a, b) => a - b);
  return { lost, history, pauses: launchedAt.slice(1).map((at, index) => at - (launchedAt[index] ?? 0)) };
}

test.for<readonly [code: string, message: string, expected: string]>([
  ['Client.VolumeLimitExceeded', 'Volume limit exceeded', 'quota whole-region'],
  ['Client.InternalError', 'Client error on launch', 'setup whole-region'],
  ['Client.InvalidKMSKey.InvalidState', 'The KMS key provided is in an incorrect state', 'setup whole-region'],
  ['Server.InternalError', 'Internal error on launch', 'failed-launch zone'],
  ['Server.InsufficientInstanceCapacity', 'Insufficient capacity', 'capacity zone'],
  ['Server.SpotInstanceTermination', 'Spot instance termination', 'capacity zone'],
  ['Server.SomethingNew', 'Nobody knows', 'failed-launch zone'],
])('instances that end by %s right after creation are relaunched with backoff', async ([code, message, expected]) => {
  const clock = new FakeClock();
  await withAwsProvider({ clock }, async (fixture) => {
    fixture.aws.control.failLaunches({}, code, message, [0, 2_000]);
    const { lost, history, pauses } = await failTimes(5, fixture, clock);
    // Without pauses, 39 machines were launched within 50 s, each at a higher price. Failures in two zones and another
    // region show that all of AWS fails.
    expect(pauses).toHaveLength(4);
    expect(pauses.filter((pause) => pause < 10_000).length).toBeLessThanOrEqual(2);
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(20_000);
    expect(lost.every((line) => line.includes(`${code}: ${message}`))).toBe(true);
    const causes = history.memory.refusals.map(({ kind, scope, isLate }) => `${kind} ${scope} ${isLate}`);
    expect(causes).toContain(`${expected} true`);
    expect(causes).toContain('failed-launch provider true');
    await end(fixture, 'k', () => clock.advance(1_000));
  });
});

test('after late refusals in one region, the next region is tried at once', async () => {
  const clock = new FakeClock();
  await withAwsProvider({ clock }, async (fixture) => {
    fixture.aws.control.failLaunches({}, 'Client.VolumeLimitExceeded', 'Volume limit exceeded', [0, 2_000]);
    const { history, pauses } = await failTimes(2, fixture, clock);
    expect(pauses[0]).toBeLessThan(10_000);
    const regions = fixture.aws.control.instances.map(({ region }) => region);
    expect(new Set(regions).size).toBe(2);
    expect(
      history.memory.refusals
        .filter(({ kind }) => kind === 'quota')
        .map(({ offer }) => offer.region)
        .toSorted(),
    ).toEqual(regions.toSorted());
    await end(fixture, 'k', () => clock.advance(1_000));
  });
});

test('an instance that never becomes visible is reported after a minute, followed by backoff', async () => {
  const clock = new FakeClock();
  await withAwsProvider({ clock }, async (fixture) => {
    fixture.aws.control.loseLaunches({});
    const { lost, pauses } = await failTimes(2, fixture, clock);
    expect(pauses).toHaveLength(1);
    expect(pauses[0]).toBeGreaterThanOrEqual(60_000);
    expect(lost[0]).toContain(
      'AWS accepted it, and shows no such instance 60 s later. Cause: failed-launch. No machine is asked for there before',
    );
    await end(fixture, 'k', () => clock.advance(1_000));
  });
});
