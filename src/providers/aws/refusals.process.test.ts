import { expect, test } from 'vitest';
import { cleanUpAwsProvider as end, instanceIdOf, refusalOf, smallOnAws, withAwsProvider } from '../../../test/support/aws-provider.ts';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { statesOf } from '../../../test/support/providers.ts';
import { aProviderContext } from '../../../test/support/provider-context.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { obtainMachine } from '../../provision/acquire-machine.ts';
import { PlacementHistory } from '../../provision/placement-history.ts';
import type { MachineId } from '../provider.ts';
import { AwsProvider } from './index.ts';

test.for<readonly [code: string, refusal: string]>([
  ['InsufficientInstanceCapacity', 'capacity region'],
  ['InsufficientHostCapacity', 'capacity region'],
  ['InsufficientReservedInstanceCapacity', 'capacity region'],
  ['InsufficientAddressCapacity', 'capacity whole-region'],
  ['InsufficientFreeAddressesInSubnet', 'capacity region'],
  ['InstanceLimitExceeded', 'quota region'],
  ['VcpuLimitExceeded', 'quota region'],
  ['MaxSpotInstanceCountExceeded', 'quota region'],
  ['VolumeLimitExceeded', 'quota whole-region'],
  ['SpotMaxPriceTooLow', 'price region'],
  ['Unsupported', 'unsupported region'],
  ['UnsupportedOperation', 'unsupported region'],
  ['OptInRequired', 'permission whole-region'],
  ['PendingVerification', 'permission whole-region'],
  ['UnauthorizedOperation', 'permission whole-region'],
  ['Blocked', 'permission provider'],
  ['RequestLimitExceeded', 'throttled whole-region'],
])('%s of RunInstances is a refusal: %s', async ([code, refusal]) => {
  await withAwsProvider({}, async (fixture) => {
    fixture.aws.conduct.refuse({ action: 'RunInstances' }, code);
    expect(await refusalOf(fixture.create('k1'))).toBe(refusal);
    expect(fixture.aws.control.instances).toEqual([]);
    fixture.aws.conduct.clear();
    // A failed attempt leaves only resources that the next attempt needs. These are removed too.
    await end(fixture, 'k1');
  });
});

test.for(['ExpiredToken', 'RequestExpired', 'InvalidClientTokenId'])('%s is reported as a credentials error', async (code) => {
  await withAwsProvider({}, async (fixture) => {
    await fixture.create('k0');
    fixture.aws.conduct.refuse({ service: 'ec2' }, code);
    await expect(fixture.create('k1')).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
    await expect(fixture.provider.list({}, {})).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
  });
});

test('list and release work after a launch in a disabled region', async () => {
  await withAwsProvider({}, async (fixture) => {
    expect(await refusalOf(fixture.create('k1', {}, { region: 'eu-south-2' }))).toBe('permission whole-region');
    expect(await fixture.provider.list({}, {})).toEqual([]);
    await fixture.provider.release('k1', {});
  });
});

test.for(['UnauthorizedOperation', 'AuthFailure'])(
  'a region that the account loses (%s) keeps no other region from its release',
  async (code) => {
    await withAwsProvider({}, async (fixture) => {
      const machines = [await fixture.create('k1'), await fixture.create('k1', {}, { region: 'eu-west-1' })];
      for (const id of machines) await fixture.provider.destroy(id, {});
      await waitFor('the machines to be gone', async () => (await fixture.provider.list({}, {})).length === 0);
      fixture.aws.conduct.refuse({ service: 'ec2', region: 'eu-west-1' }, code);
      await expect(fixture.provider.release('k1', {})).rejects.toMatchObject({ kind: 'unauthenticated' });
      const denied: string[] = [];
      const onDenied = ({ message }: Error): void => void denied.push(message);
      await waitFor('the other region to be released', () =>
        fixture.provider.release('k1', { onDenied }).then(
          () => true,
          () => false,
        ),
      );
      expect(denied).toEqual([
        expect.stringMatching(new RegExp(`^AWS would not remove what belongs to k1 in eu-west-1: .*\\(${code}\\)$`)),
      ]);
      expect(new Set(fixture.aws.control.leftovers().map(({ region }) => region))).toEqual(new Set(['eu-west-1']));
      fixture.aws.conduct.clear();
      await end(fixture, 'k1');
    });
  },
);

test('a refusal for the requested zone has the scope zone', async () => {
  await withAwsProvider({}, async (fixture) => {
    fixture.aws.control.supply.limitCapacity({ zone: 'us-east-1b' }, 0);
    expect(await refusalOf(fixture.create('k1', {}, { zone: 'us-east-1b' }))).toBe('capacity zone');
    const id = await fixture.create('k1', {}, { zone: 'us-east-1c' });
    expect(fixture.aws.control.instance(instanceIdOf(id)).zone).toBe('us-east-1c');
  });
});

test('the encoded part of a denial stays out of the error', async () => {
  await withAwsProvider({}, async (fixture) => {
    fixture.aws.conduct.refuse({ action: 'RunInstances' }, 'UnauthorizedOperation');
    const error = await fixture.create('k1').catch((reason: unknown) => reason);
    expect(`${String(error)} ${JSON.stringify(error)} ${String(error instanceof Error ? error.cause : '')}`).not.toContain('fGVu');
    expect(error).toMatchObject({ code: 'SVC_DENIED', hint: expect.stringContaining('docs/clouds/aws.md') });
  });
});

test.for<readonly [what: string, code: string, kind: string, waitMs: number]>([
  ['a quota that is raised', 'VcpuLimitExceeded', 'quota', 60_000],
  ['a right that is granted', 'AuthFailure', 'permission', 30_000],
  // Its delay has jitter: three quarters of the longest one, as the random number is 0.5.
  ['the end of an error of AWS itself', 'InternalError', 'provider-error', 3_750],
])('%s takes effect after the first backoff, not after an hour', async ([, code, kind, waitMs]) => {
  const clock = new FakeClock();
  await withAwsProvider({ clock }, async ({ aws, paths }) => {
    const provider = new AwsProvider(aProviderContext(paths.home, { clock }), { isReady: () => Promise.resolve(true) });
    const history = new PlacementHistory();
    const stop = new AbortController();
    const kinds: string[] = [];
    let refusedAt: number | undefined;
    let given: MachineId | undefined;
    aws.conduct.refuse({ action: 'RunInstances' }, code);
    const searching = obtainMachine(
      {
        alternatives: { order: 'any', choices: [someResources(smallOnAws)] },
        providers: () => Promise.resolve(statesOf(provider)),
        history,
        occupied: () => [],
        spec: () => aMachineSpec({ tags: { 'svc-service-key': 'k' } }),
        key: 'k',
        clock,
        step: async (step) => {
          if (step.type === 'refused') {
            kinds.push(step.refused.kind);
            refusedAt ??= clock.now();
            aws.conduct.clear();
          }
          await Promise.resolve();
        },
        background: stop.signal,
      },
      undefined,
      stop.signal,
    ).then(({ machineId }) => (given = machineId));
    await waitFor(
      'a machine',
      async () => {
        await clock.advance(history.pending.length > 0 ? 10 : 500);
        return given !== undefined;
      },
      { everyMs: 5 },
    );
    await searching;
    expect([kinds, history.memory.refusals]).toEqual([[kind], []]);
    const [launched] = aws.control.instances;
    const waited = (launched?.launchedAt ?? 0) - (refusedAt ?? 0);
    expect([waited >= waitMs, waited < waitMs + 25_000]).toEqual([true, true]);
    if (given !== undefined) await provider.destroy(given, {});
  });
});
