import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { freePort } from '../support/free-port.ts';
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

test('launch names the address at which a port of its program answers', async () => {
  await withSvc(async (svc) => {
    const port = await freePort();
    const program = `require("node:http").createServer((_, reply) => reply.end("served")).listen(${port}, "127.0.0.1")`;
    const file = svc.file('task.yaml', `resources: {ports: ${port}}\nrun: exec node -e '${program}'\n`);
    await svc.ok(['launch', file, '-c', 'dev', '--detach']);
    const address = await waitFor('its address', async () => (await svc.clusters())[0]?.ports[0]?.address, { describe: svc.clusters });
    const answer = async (): Promise<string | undefined> => {
      const reply = await fetch(`http://${address}`).catch(() => undefined);
      return reply?.text();
    };
    expect(await waitFor('an answer', answer, { describe: svc.clusters })).toBe('served');
    expect(await svc.ok(['status', 'dev'])).toContain(`Port ${port} of 'dev' is reached at ${address}`);
    expect(await svc.ok(['logs', 'dev', '--no-follow'])).toContain(`Port ${port} is reached at ${address}`);
    await svc.ok(['down', 'dev', '--yes']);
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
