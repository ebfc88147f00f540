import { expect, test } from 'vitest';
import { smallOnAws, withAwsPlace, type AwsPlace } from '../../../test/support/aws-place.ts';
import type { FakeAwsOptions } from '../../../test/fakes/aws/fake-aws.ts';
import { someResources } from '../../../test/support/builders.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { providerCases, type ProviderCase, type ProviderFixture } from '../conformance.ts';

interface Weather {
  readonly name: string;
  readonly options?: FakeAwsOptions;
  readonly begin?: (place: AwsPlace) => void;
}

/** What AWS is like on some days. */
const weathers: readonly Weather[] = [
  { name: 'as usual' },
  {
    name: 'throttled',
    // By chance, but not so often in a row that somebody gives up: the order of chances is that of the calls, which nobody decides where two processes ask.
    begin: ({ aws }) => aws.conduct.add({ service: 'ec2', probability: 0.2, inARow: 2 }, { kind: 'error', code: 'RequestLimitExceeded' }),
  },
  { name: 'with pages of one', begin: ({ aws }) => (aws.conduct.pageLimit = 1) },
  {
    name: 'with parts of it knowing late',
    options: {
      timing: { invisibleMs: { instance: [100, 400], group: [50, 200], key: [50, 200], tag: [100, 400], iam: [100, 400] } },
    },
  },
  {
    name: 'with replies getting lost',
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
  await withAwsPlace(options, async (place) => {
    begin?.(place);
    const other = place.open();
    const fixture: ProviderFixture = {
      provider: place.provider,
      other,
      resources: someResources(smallOnAws),
      async refuse() {
        place.aws.control.supply.limitCapacity({}, 0);
        await Promise.resolve();
      },
      async preemptAll() {
        for (const { id, state } of place.aws.control.instances) if (state !== 'terminated') place.aws.control.reclaim(id);
        await Promise.resolve();
      },
      async untilRunning(id) {
        await waitFor('both processes to see the machine run', async () => {
          const statuses = await Promise.all([place.provider, other].map(async (one) => (await one.inspect([id], {})).get(id)?.state));
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
