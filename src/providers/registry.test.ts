import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { defaultConfig } from '../domain/config.ts';
import { infraName } from '../domain/location-name.ts';
import { noFence } from '../shared/fence.ts';
import { homePaths } from '../shared/paths.ts';
import { seededRandom } from '../shared/random.ts';
import { openProvider, providerNames } from './registry.ts';

const context = {
  paths: homePaths('/nowhere', 0),
  clock: new FakeClock(),
  random: seededRandom(1),
  config: () => Promise.resolve(defaultConfig),
  sshPools: () => Promise.resolve([]),
  fence: noFence,
};

test.for(providerNames)('%s opens under its own name', async (name) => {
  expect((await openProvider(name, context)).name).toBe(name);
});

test('an unknown provider is refused with the known names', async () => {
  await expect(openProvider('loacl', context)).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: `There is no provider called 'loacl' (known: ${providerNames.map(infraName).join(', ')}). Did you mean 'local'?`,
  });
});
