import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { statesOf } from '../../test/support/providers.ts';
import { parseText } from '../../test/support/task-text.ts';
import { aStubProvider } from '../../test/support/stub-provider.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { PriceTables } from '../catalog/price-tables.ts';
import { chooseImage } from '../providers/aws/image-choice.ts';
import { vmOffers } from '../providers/vm/offers.ts';
import { hasChoice, planPlacement } from './placement-plan.ts';

/**
 * Plans a file with AWS's built-in prices and this machine. Returns the chosen machines, or the sentences why there are
 * none.
 */
async function planOf(resources: string): Promise<string> {
  const { resources: alternatives } = parseText(
    `resources: ${resources}\nservice: {readiness_probe: /, replicas: 1, ports: 8080}\nrun: serve\n`,
  );
  return withTempHome(async (home) => {
    const tables = new PriceTables(home);
    const capabilities = {
      spot: true,
      stopResume: true,
      customImages: true,
      openPorts: true,
      multiNode: false,
      gpus: true,
      diskTiers: true,
    };
    const aws = aStubProvider({
      name: 'aws',
      capabilities,
      offers: (asked, { explain = false }) =>
        vmOffers({ name: 'aws', title: 'AWS', chooseImage }, asked, {
          tables,
          settings: { regions: undefined },
          explain,
          now: Date.UTC(2026, 0, 1),
        }),
    });
    const plan = await planPlacement({
      alternatives,
      replicas: 1,
      providers: statesOf(aws, aStubProvider({ name: 'local' })),
      clock: new FakeClock(),
      explain: false,
    });
    const [best] = plan.offers;
    if (!hasChoice(plan) || best === undefined) return plan.notes.join('\n');
    return `${best.provider} ${best.accelerators ?? 'cpu'}${best.spot ? ' spot' : ''} alternative ${best.alternative} ${best.hourlyUsd > 0 ? 'priced' : 'free'}`;
  });
}

test.for([
  ['{accelerators: L4:1}', 'aws L4:1 alternative 1 priced'],
  ['{infra: aws, accelerators: A10G:1, use_spot: true}', 'aws A10G:1 spot alternative 1 priced'],
  ['{infra: aws/us-east-1, cpus: 4+, memory: 16+}', 'aws cpu alternative 1 priced'],
  ['{accelerators: {L4: 1, A10G: 1, T4: 1}}', 'aws T4:1 alternative 3 priced'],
  [
    '{any_of: [{accelerators: H100:8}, {accelerators: A100-80GB:8}], disk_tier: best, disk_size: 500}',
    /^aws (H100|A100-80GB):8 alternative [12] priced$/,
  ],
  ['{ordered: [{infra: gcp, accelerators: L4:1}, {infra: aws, accelerators: L4:1}]}', 'aws L4:1 alternative 2 priced'],
  ['{infra: aws, accelerators: T4:1, disk_tier: ultra}', 'aws T4:1 alternative 1 priced'],
  ['{cloud: gcp, accelerators: L4:1}', /^gcp: this version has no such provider \(it has aws, local\)\.$/],
  ['{infra: local, use_spot: true}', 'local: it has no spot machines (use_spot).'],
  ['{infra: aws, accelerators: L4:1, network_tier: best}', 'aws: its networks cannot be chosen (network_tier: best).'],
  ['{infra: aws, accelerators: L4:1, max_hourly_cost: 0.01}', /max_hourly_cost/],
  ['{infra: aws, accelerators: MI300X:8}', /MI300X/],
] as const)('%s gives a plan with a price, or a sentence with the missing offer', async ([resources, expected]) => {
  expect(await planOf(resources)).toMatch(expected);
});
