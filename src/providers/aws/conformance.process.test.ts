import { expect, test } from 'vitest';
import { smallOnAws, withAwsProvider, type AwsProviderFixture } from '../../../test/support/aws-provider.ts';
import type { FakeAwsOptions } from '../../../test/fakes/aws/fake-aws.ts';
import { someResources } from '../../../test/support/builders.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { providerCases, type ProviderCase, type ProviderFixture } from '../conformance.ts';

interface Weather {
  readonly name: string;
  readonly options?: FakeAwsOptions;
  readonly begin?: (awsFixture: AwsProviderFixture) => void;
}

/** Conditions under which AWS must conform. */
const weathers: readonly Weather[] = [
  { name: 'as usual' },
  {
    name: 'throttled',
    // Random, but limited for each request, so that no caller exhausts its retries. Chance depends on the order of
    // calls, which is undefined for concurrent callers.
    begin: ({ aws }) =>
      aws.conduct.add({ service: 'ec2', probability: 0.2, perRequest: 2 }, { kind: 'error', code: 'RequestLimitExceeded' }),
  },
  { name: 'with pages of one', begin: ({ aws }) => (aws.conduct.pageLimit = 1) },
  {
    name: 'with eventual consistency',
    options: {
      timing: { invisibleMs: { instance: [100, 400], group: [50, 200], key: [50, 200], tag: [100, 400], iam: [100, 400] } },
    },
  },
  {
    name: 'with lost replies',
    begin: ({ aws }) => {
      for (const action of [
        'CreateSecurityGroup',
        'ImportKeyPair',
        'AuthorizeSecurityGroupIngress',
        'DescribeInstances',
        'TerminateInstances',
      ])
        aws.conduct.add({ service: 'ec2', action, times: 1 }, { kind: 'lose-reply' });
    },
  },
];

async function runCase({ run }: ProviderCase, { options = {}, begin }: Weather): Promise<void> {
  await withAwsProvider(options, async (awsFixture) => {
    begin?.(awsFixture);
    const other = awsFixture.open();
    const fixture: ProviderFixture = {
      provider: awsFixture.provider,
      other,
      resources: someResources(smallOnAws),
      async refuse() {
        awsFixture.aws.control.supply.limitCapacity({}, 0);
        await Promise.resolve();
      },
      async preemptAll() {
        for (const { id, state } of awsFixture.aws.control.instances) if (state !== 'terminated') awsFixture.aws.control.reclaim(id);
        await Promise.resolve();
      },
      async untilRunning(id) {
        await waitFor('both processes to see the machine run', async () => {
          const statuses = await Promise.all([awsFixture.provider, other].map(async (one) => (await one.inspect([id], {})).get(id)?.state));
          const listed = await other.list({}, {});
          return statuses.every((state) => state === 'running') && listed.some((machine) => machine.id === id);
        });
      },
    };
    await run(fixture);
  });
}

for (const weather of weathers) {
  test.for(providerCases)(`aws ${weather.name}: $name`, async (one) => {
    await expect(runCase(one, weather)).resolves.toBeUndefined();
  });
}
