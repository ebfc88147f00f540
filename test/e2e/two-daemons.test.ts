import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { printFigures } from '../support/figures.ts';
import { needs } from '../support/needs.ts';
import { withPostgres } from '../support/postgres.ts';
import { balancersOf, daemonOf, killHard, machinesOf, programsOf, reconcilersOf } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

const program = /http\.server/;
const pids = (list: readonly { readonly pid: number }[]): readonly number[] => list.map(({ pid }) => pid);

/** Two homes, as of two users or two systemd units. Their controllers share their state in one PostgreSQL. */
async function withTwoHomes(use: (first: Svc, second: Svc) => Promise<void>): Promise<void> {
  await withPostgres((server) => {
    const env = { SVC_DATABASE: server.url() };
    return withSvc((first) => withSvc((second) => use(first, second), { env }), { env });
  });
}

/** A service that never scales to zero and whose replicas serve the copied files. */
function serviceFile(svc: Svc): string {
  svc.file('work/index.html', 'hello from the working directory\n');
  return svc.file(
    'service.yaml',
    `service:
  readiness_probe: /
  replica_policy: { min_replicas: 2, max_replicas: 3, target_qps_per_replica: 100 }
workdir: ${svc.home}/files/work
resources: { ports: 8080, infra: local }
run: exec python3 -m http.server $SVC_REPLICA_PORT
`,
  );
}

needs('postgres', () => {
  test('two daemons share one PostgreSQL: after kill -9 the other takes over', async () => {
    await withTwoHomes(async (first, second) => {
      await first.ok(['serve', 'up', serviceFile(first), '-n', 'shared', '--yes']);
      const before = await first.ready('shared', 2);
      const programs = pids(
        await waitFor('both programs', () => programsOf(first.home, program).length === 2 && programsOf(first.home, program)),
      );

      // The second daemon is on standby and reports it.
      const refused = await second.run(['serve', 'status']);
      expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('stands by')]);
      expect(daemonOf(second.home)).toHaveLength(1);

      const killedAt = performance.now();
      expect(killHard(daemonOf(first.home))).toBe(1);
      await waitFor('the other daemon to lead', async () => (await second.run(['serve', 'status'])).code === 0, { everyMs: 100 });
      const ledMs = performance.now() - killedAt;
      const after = await second.ready('shared', 2);
      await waitFor('the endpoint', async () => (await fetch(after.endpoint).catch(() => undefined))?.ok === true);
      printFigures('two daemons, ms after kill -9', { leads: ledMs, endpointAnswers: performance.now() - killedAt });

      // The same service with the same replica processes.
      expect(after).toMatchObject({ name: before.name, version: before.version, endpoint: before.endpoint });
      expect(after.replicas.map(({ id, status }) => [id, status])).toEqual(before.replicas.map(({ id }) => [id, 'READY']));
      expect(pids(programsOf(first.home, program))).toEqual(programs);
      expect([programsOf(second.home, program), machinesOf(second.home)]).toEqual([[], []]);
      expect(await (await fetch(after.endpoint)).text()).toBe('hello from the working directory\n');

      // No process of the former leader serves the service any more.
      await waitFor('its processes to end', () => reconcilersOf(first.home).length + balancersOf(first.home).length === 0);

      // A replica launched now has the files that only the first home had.
      killHard(programsOf(first.home, program));
      await waitFor('new replicas', () => programsOf(second.home, program).length === 2);
      const replaced = await second.ready('shared', 2);
      expect(Math.min(...replaced.replicas.filter(({ status }) => status === 'READY').map(({ id }) => id))).toBeGreaterThan(2);
      expect(await (await fetch(after.endpoint)).text()).toBe('hello from the working directory\n');

      // Only the environment of the controller contains the database URL with its password.
      const [replica] = programsOf(second.home, program);
      expect(readFileSync(`/proc/${replica?.pid}/environ`, 'utf8')).not.toContain('SVC_DATABASE');

      await second.end();
      await waitFor('the machines of the first home to be gone', () => machinesOf(first.home).length === 0);
      // The controller of the first home leads again, and removes leftovers of the killed process.
      await first.end();
    });
  });
});
