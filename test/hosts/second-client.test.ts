import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { svcOk } from '../support/run-svc.ts';
import { withTempHome } from '../support/temp-home.ts';
import { describeSshHosts, signalSsh } from './support.ts';

describeSshHosts('a second client of a remote controller', (hostOf) => {
  test('a client with the copied record and keys lists and terminates the services of the first', async () => {
    const desk = await hostOf('desk');
    await withSvc(async (first) => {
      const { identityFile = '' } = desk.target();
      writeFileSync(
        join(first.home, 'ssh_pools.yaml'),
        `rack: {user: ${desk.user}, identity_file: ${identityFile}, hosts: [${desk.ip}]}\n`,
      );
      writeFileSync(
        join(first.home, 'config.yaml'),
        'serve:\n  controller:\n    resources:\n      infra: ssh/rack\n      cpus: 1+\n      disk_size: 1\n',
      );
      const file = first.file(
        's.yaml',
        'service: { readiness_probe: / }\nresources: { ports: 80, infra: ssh/rack, cpus: 1+ }\nrun: sleep 999\n',
      );
      await first.ok(['serve', 'up', file, '-n', 'web', '--yes']);
      await withTempHome(async (home) => {
        for (const name of ['controller.json', 'config.yaml', 'ssh_pools.yaml']) cpSync(join(first.home, name), join(home, name));
        cpSync(join(first.home, 'ssh'), join(home, 'ssh'), { recursive: true, filter: (path) => !path.endsWith('/ways') });
        try {
          expect(await svcOk(['serve', 'status'], { home })).toContain('web');
          await svcOk(['serve', 'down', 'web', '--yes'], { home });
        } finally {
          signalSsh(home);
        }
      });
      expect(await first.services()).toEqual([]);
      await first.ok(['controller', 'down', '--yes']);
    });
  });
});
