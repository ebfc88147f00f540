import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { waitFor } from '../support/wait-for.ts';

/** Sets the state of this machine's simulated regions. */
function setRegions(svc: Svc, states: Readonly<Record<string, 'up' | 'refusing' | 'lost'>>): void {
  const regions = Object.entries(states).map(([name, state]) => `    - name: ${name}\n      state: ${state}\n`);
  writeFileSync(join(svc.home, 'config.yaml'), `local:\n  regions:\n${regions.join('')}`);
}

const regionsOf = async (svc: Svc): Promise<readonly (string | null)[]> =>
  (await svc.service('hello')).replicas.filter(({ status }) => status === 'READY').map(({ region }) => region);

test('a region that refuses is skipped, and the history records it', async () => {
  await withSvc(async (svc) => {
    setRegions(svc, { east: 'refusing', west: 'up' });
    await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
    await svc.ready('hello', 2);
    expect(await regionsOf(svc)).toEqual(['west', 'west']);
    expect((await svc.events('hello')).filter(({ cause }) => cause === 'launch-refused').map(({ message }) => message)).toContainEqual(
      expect.stringContaining('east'),
    );
    await svc.end();
  });
});

test('replicas of a lost region are replaced in another while the endpoint answers', async () => {
  await withSvc(async (svc) => {
    setRegions(svc, { east: 'up', west: 'refusing' });
    await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
    const { endpoint } = await svc.ready('hello', 2);
    expect(await regionsOf(svc)).toEqual(['east', 'east']);

    setRegions(svc, { east: 'lost', west: 'up' });
    const moved = async (): Promise<boolean> => (await regionsOf(svc)).join() === 'west,west';
    await waitFor('both replicas to be in the west', moved, { describe: () => svc.service('hello') });
    expect((await fetch(endpoint)).status).toBe(200);
    await svc.end();
  });
});
