import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { openLoad, outcomes } from '../support/load.ts';
import { waitFor } from '../support/wait-for.ts';

const hello = 'examples/hello/service.yaml';

test('a terminated replica drains without a failed request; its log stays readable', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', hello, '-n', 'hello']);
    const { endpoint } = await svc.ready('hello', 2);
    const load = openLoad({ url: `${endpoint}/replica.txt` }, 20);
    await svc.ok(['serve', 'terminate-replica', 'hello', '1', '--yes']);
    const replaced = async (): Promise<boolean> => {
      const { replicas } = await svc.service('hello');
      return (
        replicas.some(({ id, status }) => id === 3 && status === 'READY') &&
        !replicas.some(({ id, endedAt }) => id === 1 && endedAt === null)
      );
    };
    await waitFor('replica 3 in the place of replica 1', replaced, { describe: () => svc.service('hello') });
    const result = await load.stop();
    expect(outcomes(result)).toEqual({ 200: result.sent });

    const log = await svc.ok(['serve', 'logs', 'hello', '1', '--no-follow']);
    expect(log).toContain('listening on port 8080');
    const again = await svc.run(['serve', 'terminate-replica', 'hello', '1', '--yes']);
    expect([again.code, /code: (\S+)/.exec(again.stderr)?.[1]]).toEqual([4, 'SVC_REPLICA_ENDING']);
    const unknown = await svc.run(['serve', 'terminate-replica', 'hello', '99', '--yes']);
    expect([unknown.code, /code: (\S+)/.exec(unknown.stderr)?.[1]]).toEqual([3, 'SVC_REPLICA_NOT_FOUND']);
    await svc.end();
  });
});

test("a replica's log holds provisioning, setup and run in order", async () => {
  await withSvc(async (svc) => {
    const file = svc.file(
      'service.yaml',
      [
        'service:',
        '  replicas: 1',
        'resources:',
        '  ports: 8080',
        'setup: echo setup of replica $SVC_REPLICA_ID',
        'run: |',
        '  echo run of $SVC_SERVICE_NAME on $SVC_REPLICA_PORT, node $SVC_NODE_RANK of $SVC_NUM_NODES',
        '  exec python3 -m http.server 8080',
        '',
      ].join('\n'),
    );
    await svc.ok(['serve', 'up', file, '-n', 'logs']);
    await svc.ready('logs', 1);
    const log = await svc.ok(['serve', 'logs', 'logs', '1', '--no-follow']);
    const positions = ['setup of replica 1', 'run of logs on 8080, node 0 of 1'].map((text) => log.indexOf(text));
    expect(positions.every((position, index) => position > (positions[index - 1] ?? 0))).toBe(true);
    expect((await svc.ok(['serve', 'logs', 'logs', '1', '--no-follow', '--tail', '1'])).trim().split('\n')).toHaveLength(1);
    await svc.end();
  });
});

test('a program that exits at once makes the service FAILED with its last output', async () => {
  await withSvc(async (svc) => {
    const file = svc.file('service.yaml', 'service: {}\nresources:\n  ports: 8080\nrun: echo no weights found >&2; exit 3\n');
    await svc.ok(['serve', 'up', file, '-n', 'broken', '--no-wait']);
    const failed = async (): Promise<string | false> => {
      const { status, reason } = await svc.service('broken');
      return status === 'FAILED' && (reason ?? '');
    };
    expect(await waitFor('the service to fail', failed, { describe: () => svc.service('broken') })).toContain('no weights found');
    const reply = await fetch((await svc.service('broken')).endpoint);
    expect([reply.status, reply.headers.has('retry-after'), reply.headers.get('content-type')]).toEqual([503, true, 'application/json']);
    await svc.end();
  });
});

test('a failed setup is reported as such', async () => {
  await withSvc(async (svc) => {
    const file = svc.file('service.yaml', 'service: {}\nresources:\n  ports: 8080\nsetup: echo cannot install; exit 9\nrun: sleep 1000\n');
    await svc.ok(['serve', 'up', file, '-n', 'broken', '--no-wait']);
    const replica = async (): Promise<string | false> => {
      const first = (await svc.service('broken')).replicas.find(({ id }) => id === 1);
      return first?.endedAt !== null && (first?.reason ?? false);
    };
    expect(await waitFor('the first replica to fail', replica, { describe: () => svc.service('broken') })).toMatch(/setup/i);
    expect(await svc.ok(['serve', 'logs', 'broken', '1', '--no-follow'])).toContain('cannot install');
    await svc.end();
  });
});
