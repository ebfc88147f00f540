import { expect, test } from 'vitest';
import { endAwsPlace as end, instanceIdOf, refusalOf, withAwsPlace } from '../../../test/support/aws-place.ts';

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
  ['Blocked', 'permission place'],
  ['RequestLimitExceeded', 'throttled whole-region'],
])('%s of RunInstances is a refusal: %s', async ([code, refusal]) => {
  await withAwsPlace({}, async (place) => {
    place.aws.conduct.refuse({ action: 'RunInstances' }, code);
    expect(await refusalOf(place.create('k1'))).toBe(refusal);
    expect(place.aws.control.instances).toEqual([]);
    place.aws.conduct.clear();
    // Nothing is left behind by an attempt that failed, but what the next one needs, and that goes too.
    await end(place, 'k1');
  });
});

test.for(['ExpiredToken', 'RequestExpired', 'InvalidClientTokenId'])('%s says that the credentials are at fault', async (code) => {
  await withAwsPlace({}, async (place) => {
    place.aws.conduct.refuse({ service: 'ec2' }, code);
    await expect(place.create('k1')).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
    await expect(place.provider.list({}, {})).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
  });
});

test('a refusal that names the zone that was asked for is about that zone', async () => {
  await withAwsPlace({}, async (place) => {
    place.aws.control.supply.limitCapacity({ zone: 'us-east-1b' }, 0);
    expect(await refusalOf(place.create('k1', {}, { zone: 'us-east-1b' }))).toBe('capacity zone');
    const id = await place.create('k1', {}, { zone: 'us-east-1c' });
    expect(place.aws.control.instance(instanceIdOf(id)).zone).toBe('us-east-1c');
  });
});

test('what AWS encodes into a denial is told to nobody', async () => {
  await withAwsPlace({}, async (place) => {
    place.aws.conduct.refuse({ action: 'RunInstances' }, 'UnauthorizedOperation');
    const error = await place.create('k1').catch((reason: unknown) => reason);
    expect(`${String(error)} ${JSON.stringify(error)} ${String(error instanceof Error ? error.cause : '')}`).not.toContain('fGVu');
    expect(error).toMatchObject({ code: 'SVC_DENIED', hint: expect.stringContaining('docs/clouds/aws.md') });
  });
});
