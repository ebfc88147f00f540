import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { waitFor } from '../support/wait-for.ts';

test('launch runs setup and run once, exec skips setup, down leaves nothing', async () => {
  await withSvc(async (svc) => {
    const file = svc.file(
      'task.yaml',
      'envs:\n  WHO: nobody\nsetup: echo setting up\nrun: echo "hello $WHO, job of node $SVC_NODE_RANK"\n',
    );
    await svc.ok(['launch', file, '-c', 'dev', '--env', 'WHO=world']);
    const ended = async (count: number): Promise<boolean> => {
      const [cluster] = await svc.clusters();
      return cluster?.jobs.length === count && cluster.jobs.every(({ endedAt }) => endedAt !== null);
    };
    await waitFor('the first job to end', () => ended(1), { describe: svc.clusters });
    const first = await svc.ok(['logs', 'dev', '--no-follow']);
    expect(first).toMatch(/created machine[\s\S]*setting up[\s\S]*hello world, job of node 0/);

    await svc.ok(['exec', 'dev', file, '--env', 'WHO=again']);
    await waitFor('the second job to end', () => ended(2), { describe: svc.clusters });
    const second = await svc.ok(['logs', 'dev', '2', '--no-follow']);
    expect(second).toContain('hello again');
    // The failed command must not have created a cluster.
    expect(second).not.toMatch(/setting up|Asking|created machine/);

    const [cluster] = await svc.clusters();
    expect(cluster?.jobs.map(({ id, status, exitCode }) => ({ id, status, exitCode }))).toEqual([
      { id: 1, status: 'SUCCEEDED', exitCode: 0 },
      { id: 2, status: 'SUCCEEDED', exitCode: 0 },
    ]);
    expect(await svc.ok(['status'])).toMatch(/dev/);
    await svc.ok(['down', 'dev', '--yes']);
    await waitFor('the cluster to be gone', async () => (await svc.clusters()).length === 0, { describe: svc.clusters });
    await svc.end();
  });
});

test('a failed job keeps its exit code and output', async () => {
  await withSvc(async (svc) => {
    const file = svc.file('task.yaml', 'run: echo about to fail; exit 7\n');
    await svc.run(['launch', file, '-c', 'dev']);
    const failed = async (): Promise<unknown> => {
      const job = (await svc.clusters())[0]?.jobs[0];
      return job?.status === 'FAILED' && job.exitCode;
    };
    expect(await waitFor('the job to fail', failed, { describe: svc.clusters })).toBe(7);
    expect(await svc.ok(['logs', 'dev', '--no-follow'])).toContain('about to fail');
    await svc.ok(['down', 'dev', '--yes']);
    await svc.end();
  });
});
