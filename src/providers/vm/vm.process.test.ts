import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, someResources } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { aPriceTable } from '../../../test/support/price-tables.ts';
import { aProviderContext } from '../../../test/support/provider-context.ts';
import { SmallCloud, SmallCloudError } from '../../../test/support/small-cloud.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { formatTable } from '../../catalog/table-format.ts';
import type { Clock } from '../../shared/clock.ts';
import { providerCases } from '../conformance.ts';
import type { VmDriver, VmTraits } from './driver.ts';
import { VmProvider } from './index.ts';

interface SmallProvider {
  readonly cloud: SmallCloud;
  /** Opens the provider as another process of the home would. */
  readonly open: (change?: Partial<VmDriver<object>>) => VmProvider<object>;
}

async function withCloud(
  { clock, ...traits }: Partial<VmTraits> & { readonly clock?: Clock },
  use: (small: SmallProvider) => Promise<void>,
): Promise<void> {
  await withTempHome(async (home) => {
    const context = aProviderContext(home, clock === undefined ? {} : { clock });
    mkdirSync(context.paths.catalogDir, { recursive: true });
    writeFileSync(join(context.paths.catalogDir, 'small.csv'), formatTable(aPriceTable({ cloud: 'small' })));
    const cloud = new SmallCloud();
    const options = { isReady: () => Promise.resolve(true) };
    await use({ cloud, open: (change = {}) => new VmProvider(context, cloud.driver(traits, change), options) });
  });
}

const offer = anOffer({ provider: 'small', region: 'east', zone: undefined });
const spec = aMachineSpec({ tags: { 'svc-service-key': 's', 'svc-key': 'k' } });

const clouds: readonly (Partial<VmTraits> & { readonly name: string })[] = [
  { name: 'with tags' },
  { name: 'with labels of lower-case letters', labels: 'lower-case' },
  { name: 'with a list for each region', listCovers: 'region' },
];

for (const { name, ...traits } of clouds) {
  test.for(providerCases)(`a small cloud ${name}: $name`, async ({ run }) => {
    const running = withCloud(traits, async ({ cloud, open }) => {
      const provider = open();
      await run({
        provider,
        other: open(),
        resources: someResources(),
        refuse: async () => void (cloud.isFull = true),
        preemptAll: async () => cloud.preemptAll(),
        async untilRunning(id) {
          await waitFor('the machine to run', async () => (await provider.inspect([id], {})).get(id)?.state === 'running');
        },
      });
    });
    await expect(running).resolves.toBeUndefined();
  });
}

test('a launch whose response is lost returns the machine that it created', async () => {
  await withCloud({}, async ({ cloud, open }) => {
    cloud.lostReplies = 1;
    expect(await open().create(offer, spec, 'k', {})).toBe('east/m-1');
    expect(cloud.launches).toHaveLength(1);
  });
});

test('a machine that lists do not show yet is not created twice', async () => {
  await withCloud({}, async ({ cloud, open }) => {
    const provider = open();
    cloud.unlisted.add('m-1');
    const id = await provider.create(offer, spec, 'k', {});
    expect(await open().create(offer, spec, 'k', {})).toBe(id);
    expect(cloud.launches).toHaveLength(1);
    await provider.destroy(id, {});
    expect(await open().create(offer, spec, 'k', {})).toBe('east/m-2');
  });
});

test('a key gets a new machine after the machine of its intent ended', async () => {
  await withCloud({}, async ({ cloud, open }) => {
    await open().create(offer, spec, 'k', {});
    cloud.preemptAll();
    expect(await open().create(offer, spec, 'k', {})).toBe('east/m-2');
    cloud.isFull = true;
    await expect(open().create(offer, spec, 'other', {})).rejects.toMatchObject({ refusal: 'capacity', scope: 'region' });
  });
});

test("launches of a home keep the cloud's pace across processes", async () => {
  const clock = new FakeClock();
  await withCloud({ paceMs: 12_000, clock }, async ({ cloud, open }) => {
    await open().create(offer, spec, 'a', {});
    const second = open().create(offer, spec, 'b', {});
    await waitFor('the second launch to await its turn', () => clock.pendingTimers > 0);
    await clock.advance(11_000);
    expect(cloud.launches).toHaveLength(1);
    await clock.advance(1_000);
    expect(await second).toBe('east/m-2');
  });
});

const refuseLate = () => Promise.reject(new SmallCloudError('FULL', 503, 'There are none left.'));

test('a machine that the cloud refuses late is removed', async () => {
  await withCloud({}, async ({ cloud, open }) => {
    await expect(open({ settle: refuseLate }).create(offer, spec, 'k', {})).rejects.toMatchObject({ refusal: 'capacity' });
    expect([...cloud.machines]).toEqual([]);
    expect(await open().create(offer, spec, 'k', {})).toBe('east/m-2');
  });
});

test('capabilities follow from the members of a driver', async () => {
  await withCloud({}, async ({ open }) => {
    const plain = open();
    expect([plain.stop, plain.start, plain.capabilities.stopResume]).toEqual([undefined, undefined, false]);
    const power = { stop: () => Promise.resolve(), start: () => Promise.resolve() };
    const { stop, start, capabilities } = open({ power });
    expect([typeof stop, typeof start, capabilities.stopResume]).toEqual(['function', 'function', true]);
    expect(await plain.credentials({ provider: 'ssh', home: '/h' }, {})).toBeUndefined();
    expect((await plain.credentials({ provider: 'ssh', home: '/h', key: 'c' }, {}))?.files[0]?.path).toBe('ssh/small/secret');
  });
});

test('a region that denies access is skipped only if others answer', async () => {
  await withCloud({ listCovers: 'region' }, async ({ cloud, open }) => {
    const lost = new Set<string>();
    let isBusy = false;
    const deny = (region: string): void => {
      if (isBusy && region === 'west') throw new SmallCloudError('BUSY', 500, 'Machines use it.');
      if (lost.has(region)) throw new SmallCloudError('NO_RIGHT', 403, `The account lost ${region}.`);
    };
    const plain = cloud.driver({ listCovers: 'region' });
    const provider = open({
      list: async (region, ...rest) => {
        deny(region);
        return (await plain.list(region, ...rest)).filter((machine) => machine.region === region);
      },
      releaseShared: async (region, ...rest) => {
        deny(region);
        await plain.releaseShared(region, ...rest);
      },
    });
    const west = await provider.create({ ...offer, region: 'west' }, spec, 'a', {});
    await provider.create(offer, spec, 'b', {});
    lost.add('east');
    const reports: string[] = [];
    const onDenied = (error: Error): void => void reports.push(error.message);
    await expect(provider.list({}, {})).rejects.toMatchObject({ code: 'SVC_DENIED' });
    await expect(provider.release('s', {})).rejects.toMatchObject({ code: 'SVC_DENIED' });
    cloud.released.length = 0;
    expect((await open().list({}, {})).length).toBe(2);
    await provider.release('s', { onDenied });
    expect(cloud.released).toEqual(['west s']);
    expect(reports).toEqual(['Small Cloud would not remove what belongs to s in east: The account lost east (NO_RIGHT)']);
    reports.length = 0;
    await provider.list({}, { onDenied });
    expect(reports).toEqual(['Small Cloud would not list machines in east: The account lost east (NO_RIGHT)']);
    // The caller tries again: the failure of the region that answers counts.
    isBusy = true;
    await expect(provider.release('s', { onDenied })).rejects.toMatchObject({ code: 'SVC_PLACE_FAILED' });
    isBusy = false;
    // When every region denies access, the credentials are bad.
    lost.add('west');
    await expect(provider.release('s', { onDenied })).rejects.toMatchObject({ code: 'SVC_DENIED' });
    await expect(provider.list({}, { onDenied })).rejects.toMatchObject({ code: 'SVC_DENIED' });
    expect([reports.length, west]).toEqual([1, 'west/m-1']);
  });
});

test('an owner is released once when one list covers the account', async () => {
  await withCloud({}, async ({ cloud, open }) => {
    await open().create(offer, spec, 'a', {});
    await open().create({ ...offer, region: 'west' }, spec, 'b', {});
    await open().release('s', {});
    expect(cloud.released).toEqual(['east s']);
  });
});
