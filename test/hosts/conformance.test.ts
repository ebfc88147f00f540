import { expect, test } from 'vitest';
import { jobCases } from '../../src/provision/job-conformance.ts';
import { remoteCases } from '../../src/remote/conformance.ts';
import type { TestSshHostOptions } from '../testbed/hosts/test-hosts.ts';
import { describeSshHosts, nodeBinary, openRemote, withHome, withRemote } from './support.ts';

const machines: readonly (readonly [name: string, options: TestSshHostOptions])[] = [
  ['near', {}],
  ['without rsync and with two sessions', { rsync: false, maxSessions: 2 }],
  ['far and without sudo', { delayMs: 35, sudo: false, user: 'someone' }],
];

describeSshHosts('remote over SSH', (hostOf) => {
  for (const [name, options] of machines) {
    test.for(remoteCases)(`${name}: $name`, async ({ run }) => {
      const host = await hostOf(name.replaceAll(' ', '-'), options);
      await withRemote(host, (remote) => expect(run(remote)).resolves.toBeUndefined(), { environment: { SVC_COOKIE: 'c00kie' } });
    });
  }

  test.for(jobCases)('job: $name', async ({ run }) => {
    const host = await hostOf('job', { node: nodeBinary });
    const second = await hostOf('job-too', { node: nodeBinary });
    await withHome(second, (others) =>
      withHome(host, async (paths) => {
        const fixture = { remote: await openRemote(paths, host), other: await openRemote(others, second), node: '/usr/local/bin/node' };
        await expect(run(fixture)).resolves.toBeUndefined();
      }),
    );
  });
});
