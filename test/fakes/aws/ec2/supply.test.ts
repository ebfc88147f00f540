import {
  DescribeInstanceTypeOfferingsCommand,
  DescribeInstanceTypesCommand,
  DescribeRegionsCommand,
  DescribeSpotPriceHistoryCommand,
  RunInstancesCommand,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2';
import { GetServiceQuotaCommand } from '@aws-sdk/client-service-quotas';
import { expect, test } from 'vitest';
import { aLaunch, clientsOf, outcomeOf, ubuntuIn, withFakeAws, type Clients } from '../testing.ts';

const onSpot = (price?: string): Partial<RunInstancesCommandInput> => ({
  InstanceMarketOptions: { MarketType: 'spot', ...(price === undefined ? {} : { SpotOptions: { MaxPrice: price } }) },
});
const inZone = (letter: string): Partial<RunInstancesCommandInput> => ({ Placement: { AvailabilityZone: `us-east-1${letter}` } });

async function launch({ ec2 }: Clients, more: Partial<RunInstancesCommandInput> = {}): Promise<unknown> {
  return ec2.send(new RunInstancesCommand(aLaunch(more)));
}

test('zone capacity is limited, and a launch without a zone finds a free zone', async () => {
  await withFakeAws({}, async (aws, clients) => {
    const end = aws.control.supply.limitCapacity({ zone: 'us-east-1a', instanceType: 't3.micro' }, 2);
    expect(await outcomeOf(launch(clients, inZone('a')))).toBe('ok');
    expect(await outcomeOf(launch(clients, inZone('a')))).toBe('ok');
    expect(await outcomeOf(launch(clients, inZone('a')))).toBe('InsufficientInstanceCapacity 500');
    expect(await outcomeOf(launch(clients, { ...inZone('a'), InstanceType: 't3.small' }))).toBe('ok');
    for (let count = 0; count < 10; count += 1) await launch(clients);
    expect(aws.control.instances.filter(({ zone, type }) => zone === 'us-east-1a' && type.name === 't3.micro')).toHaveLength(2);
    end();
    expect(await outcomeOf(launch(clients, inZone('a')))).toBe('ok');
  });
});

test('a launch of several gets what is available, but at least the minimum', async () => {
  await withFakeAws({}, async (aws, clients) => {
    aws.control.supply.limitCapacity({ region: 'us-east-1' }, 3);
    expect(await outcomeOf(launch(clients, { MinCount: 4, MaxCount: 5 }))).toBe('InsufficientInstanceCapacity 500');
    expect(aws.control.instances).toHaveLength(0);
    expect(await outcomeOf(launch(clients, { MinCount: 1, MaxCount: 5 }))).toBe('ok');
    expect(aws.control.instances).toHaveLength(3);
  });
});

test('quotas apply per region, family and market, and Service Quotas lists them', async () => {
  await withFakeAws({}, async (aws, clients) => {
    aws.control.supply.setQuota({ quota: 'g', spot: false }, 8);
    aws.control.supply.setQuota({ quota: 'g', spot: true }, 0);
    const quota = await clients.quotas.send(new GetServiceQuotaCommand({ ServiceCode: 'ec2', QuotaCode: 'L-DB2E81BA' }));
    expect(quota.Quota?.Value).toBe(8);
    expect(await outcomeOf(launch(clients, { InstanceType: 'g5.2xlarge' }))).toBe('ok');
    expect(await outcomeOf(launch(clients, { InstanceType: 'g5.xlarge' }))).toBe('VcpuLimitExceeded 400');
    expect(await outcomeOf(launch(clients, { InstanceType: 'g5.xlarge', ...onSpot() }))).toBe('MaxSpotInstanceCountExceeded 400');
    expect(await outcomeOf(launch(clients, { InstanceType: 't3.large' }))).toBe('ok');
    const ohio = clientsOf(aws, { region: 'us-east-2' });
    expect(await outcomeOf(launch(ohio, { InstanceType: 'g5.xlarge', ImageId: ubuntuIn('us-east-2') }))).toBe('ok');
    ohio.close();
  });
});

test('the test sets the spot price, and a lower bid is refused', async () => {
  await withFakeAws({}, async (aws, clients) => {
    aws.control.supply.setSpotPrice({ zone: 'us-east-1b', instanceType: 'g5.xlarge' }, 0.5);
    const history = await clients.ec2.send(
      new DescribeSpotPriceHistoryCommand({ InstanceTypes: ['g5.xlarge'], AvailabilityZone: 'us-east-1b' }),
    );
    expect(history.SpotPriceHistory?.map(({ SpotPrice: price }) => price)).toEqual(['0.500000']);
    const target = { InstanceType: 'g5.xlarge' as const, ...inZone('b') };
    expect(await outcomeOf(launch(clients, { ...target, ...onSpot('0.4999') }))).toBe('SpotMaxPriceTooLow 400');
    expect(await outcomeOf(launch(clients, { ...target, ...onSpot('0.5') }))).toBe('ok');
  });
});

test('a type that a zone does not offer is neither launched nor listed', async () => {
  await withFakeAws({}, async (aws, clients) => {
    aws.control.supply.withhold({ zone: 'us-east-1e', instanceType: 'p5.48xlarge' });
    expect(await outcomeOf(launch(clients, { InstanceType: 'p5.48xlarge', ...inZone('e') }))).toBe('Unsupported 400');
    const filter = [{ Name: 'instance-type', Values: ['p5.48xlarge'] }];
    const offered = await clients.ec2.send(
      new DescribeInstanceTypeOfferingsCommand({ LocationType: 'availability-zone', Filters: filter }),
    );
    expect(offered.InstanceTypeOfferings?.map(({ Location: zone }) => zone)).toEqual(
      ['a', 'b', 'c', 'd', 'f'].map((letter) => `us-east-1${letter}`),
    );
    const { InstanceTypes: types } = await clients.ec2.send(new DescribeInstanceTypesCommand({ InstanceTypes: ['p5.48xlarge'] }));
    expect(types?.[0]).toMatchObject({
      VCpuInfo: { DefaultVCpus: 192 },
      GpuInfo: { Gpus: [{ Name: 'H100', Count: 8, MemoryInfo: { SizeInMiB: 81_920 } }] },
    });
  });
});

test('any refusal can be injected by region, zone, type or market, with a count', async () => {
  await withFakeAws({}, async (aws, clients) => {
    const codes = [
      'InsufficientHostCapacity',
      'InstanceLimitExceeded',
      'PendingVerification',
      'UnauthorizedOperation',
      'Unavailable',
      'UnsupportedOperation',
    ];
    for (const code of codes) aws.conduct.refuse({ action: 'RunInstances', instanceType: 't3.micro', times: 1 }, code);
    const outcomes: string[] = [];
    for (let count = 0; count <= codes.length; count += 1) outcomes.push((await outcomeOf(launch(clients))).split(' ')[0] ?? '');
    expect(outcomes.toSorted()).toEqual([...codes, 'ok'].toSorted());
    aws.conduct.refuse({ spot: true }, 'InsufficientInstanceCapacity');
    expect(await outcomeOf(launch(clients, onSpot()))).toBe('InsufficientInstanceCapacity 500');
    expect(await outcomeOf(launch(clients))).toBe('ok');
  });
});

test('a region that the account did not enable rejects its keys', async () => {
  await withFakeAws({}, async (aws, clients) => {
    const { Regions: all } = await clients.ec2.send(new DescribeRegionsCommand({ AllRegions: true }));
    const { Regions: enabled } = await clients.ec2.send(new DescribeRegionsCommand({}));
    expect(all?.find(({ RegionName: name }) => name === 'eu-south-2')?.OptInStatus).toBe('not-opted-in');
    expect([enabled?.length, all?.length]).toEqual([17, 33]);
    const spain = clientsOf(aws, { region: 'eu-south-2' });
    expect(await outcomeOf(launch(spain, { ImageId: ubuntuIn('eu-south-2') }))).toBe('AuthFailure 401');
    aws.control.setRegionEnabled('eu-south-2', true);
    expect(await outcomeOf(launch(spain, { ImageId: ubuntuIn('eu-south-2') }))).toBe('ok');
    spain.close();
  });
});
