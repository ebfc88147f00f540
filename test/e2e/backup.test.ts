import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { needs } from '../support/needs.ts';
import { withTempHome } from '../support/temp-home.ts';

needs('python3', () => {
  test('a backup of a running controller is restored into an empty home, which serves the service', async () => {
    await withTempHome(async (folder) => {
      await withSvc(async (first) => {
        first.file('work/index.html', 'from the working directory\n');
        const file = first.file(
          'service.yaml',
          `service: { readiness_probe: /, replicas: 1 }
workdir: ${first.home}/files/work
resources: { ports: 8080, infra: local }
run: exec python3 -m http.server $SVC_REPLICA_PORT
`,
        );
        await first.ok(['serve', 'up', file, '-n', 'web', '--yes']);
        await first.ready('web', 1);
        const archive = join(folder, 'backup.tar.gz');
        await first.ok(['controller', 'backup', archive]);
        await first.ok(['serve', 'down', 'web', '--yes']);
        await withSvc(async (second) => {
          await second.ok(['controller', 'restore', archive]);
          // The machines of the former home are not there: the reconciler launches others.
          const { endpoint } = await second.ready('web', 1);
          expect(await (await fetch(endpoint)).text()).toBe('from the working directory\n');
          await second.end();
        });
        await first.end();
      });
    });
  });
});
