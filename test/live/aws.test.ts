import { expect, test } from 'vitest';
import { defaultConfig } from '../../src/domain/config.ts';
import { destroyMachine, waitUntilRunning } from '../../src/provision/machine.ts';
import { openProvider } from '../../src/providers/registry.ts';
import type { MachineId, MachineStatus, Provider } from '../../src/providers/provider.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { aMachineSpec, someResources } from '../support/builders.ts';
import { aProviderContext } from '../support/provider-context.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';

/** Maximum price of a machine, US dollars an hour. */
const maxHourlyUsd = 0.05;
const limitMs = 600_000;
/** Time for the clean-up, which runs after failures too, ms. */
const cleanUpMs = 300_000;

const owner = `live-${Date.now().toString(36)}`;
const tags = { 'svc-service': 'svc-live-test', 'svc-service-key': owner, 'svc-key': owner };

test('a small machine at the real AWS starts, works, stops, restarts and terminates', { timeout: limitMs + cleanUpMs }, async () => {
  if (process.env['LIVE_AWS'] !== 'costs-money') {
    throw new Error('This makes a machine in your AWS account. If that is what you want: LIVE_AWS=costs-money npm run test:live -- aws');
  }
  const region = process.env['LIVE_AWS_REGION'] ?? 'us-east-1';
  await withTempHome(async (home) => {
    const config = { ...defaultConfig, aws: { ...defaultConfig.aws, regions: [region] } };
    const provider = await openProvider('aws', aProviderContext(home, { config: () => Promise.resolve(config) }));
    const signal = AbortSignal.timeout(limitMs);
    try {
      expect(await useMachine(provider, region, signal)).toMatchObject({ state: 'gone' });
    } finally {
      await removeAll(provider);
    }
  });
});

async function useMachine(provider: Provider, region: string, signal: AbortSignal): Promise<MachineStatus | undefined> {
  expect(await provider.check({ signal })).toMatchObject({ enabled: true });
  const resources = someResources({
    region,
    cpus: { value: 2, atLeast: true },
    memory: { value: 1, atLeast: true },
    diskSizeGb: 8,
    maxHourlyCost: maxHourlyUsd,
  });
  const [offer] = (await provider.offers(resources, { signal })).offers;
  if (offer === undefined) throw new Error(`${region} has no machine for ${maxHourlyUsd} $/h`);
  const id = await provider.create(offer, aMachineSpec({ tags, diskSizeGb: 8 }), owner, { signal });
  expect(await provider.create(offer, aMachineSpec({ tags, diskSizeGb: 8 }), owner, { signal })).toBe(id);
  await waitUntilRunning(provider, id, systemClock, signal);
  const greet = async (): Promise<string> => (await provider.remote(id).exec(['uname', '-s'], { signal })).stdout.trim();
  expect(await greet()).toBe('Linux');
  await provider.stop?.(id, { signal });
  await waitFor('the machine to have stopped', () => startsAgain(provider, id, signal), { timeoutMs: limitMs, everyMs: 5_000 });
  await waitUntilRunning(provider, id, systemClock, signal);
  expect(await greet()).toBe('Linux');
  await destroyMachine(provider, id, systemClock, cleanUpMs, signal);
  return (await provider.inspect([id], { signal })).get(id);
}

/** AWS refuses to start a machine before it has stopped completely. */
async function startsAgain(provider: Provider, id: MachineId, signal: AbortSignal): Promise<boolean> {
  if ((await provider.inspect([id], { signal })).get(id)?.state !== 'stopped') return false;
  try {
    await provider.start?.(id, { signal });
    return true;
  } catch {
    return false;
  }
}

async function removeAll(provider: Provider): Promise<void> {
  for (const { id } of await provider.list({ 'svc-service-key': owner }, {})) await provider.destroy(id, {});
  const isReleased = (): Promise<boolean> =>
    provider.release(owner, {}).then(
      () => true,
      () => false,
    );
  await waitFor('everything to be removed', isReleased, { timeoutMs: cleanUpMs, everyMs: 5_000 });
  expect(await provider.list({}, {})).toEqual([]);
}
