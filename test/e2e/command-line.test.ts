import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { processesOf } from '../support/leaks.ts';
import { letGo } from '../support/processes.ts';
import { checkout, finish, startSvc, testEnv } from '../support/run-svc.ts';
import { waitFor } from '../support/wait-for.ts';

test('the wrapper works from any folder, through a link, without a home', async () => {
  await withSvc(async ({ home }) => {
    const link = join(home, 'svc-link');
    symlinkSync(join(checkout, 'svc'), link);
    const env = { ...testEnv({ home }), HOME: undefined, NODE_COMPILE_CACHE: undefined };
    expect(execFileSync(link, ['--version'], { cwd: '/', env, encoding: 'utf8' })).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

test('reading commands start no controller; `status -r` starts it and lists it', async () => {
  await withSvc(async (svc) => {
    expect(await svc.ok(['serve', 'status'])).toBe('No live services.\n');
    expect(await svc.ok(['status'])).toContain('No existing clusters.');
    expect(processesOf(svc.home)).toEqual([]);
    expect(await svc.ok(['status', '-r'])).toMatch(/svc-controller .* UP/);
    await svc.end();
  });
});

test('Ctrl-C during `up` leaves the service running', async () => {
  await withSvc(async (svc) => {
    const file = svc.file(
      'service.yaml',
      'service: {}\nresources:\n  ports: 8080\nrun: until [ -e go ]; do sleep 0.1; done; exec python3 -m http.server 8080\n',
    );
    const up = startSvc(['serve', 'up', file, '-n', 'slow'], { home: svc.home, tty: true });
    const ended = finish(up);
    // By then `up` has been following for a while.
    const isStarting = async (): Promise<boolean> =>
      (await svc.services()).some(({ replicas }) => replicas.some(({ status }) => status === 'STARTING'));
    await waitFor('its program', isStarting);
    up.stdin?.write('\u0003');
    expect((await ended).code).toBe(130);
    letGo(svc.home);
    await svc.ready('slow', 1);
    await svc.end();
  });
});

test('variables come from environment, command line and file; later sources override earlier ones', async () => {
  await withSvc(async (svc) => {
    const file = svc.file(
      'service.yaml',
      [
        'service: {}',
        'resources:',
        '  ports: 8080',
        'envs:',
        '  A: null',
        '  B: from the file',
        '  C: null',
        'run: |',
        '  echo "$A, $B, $C" > answer.txt',
        '  exec python3 -m http.server 8080',
        '',
      ].join('\n'),
    );
    const variables = svc.file('variables', 'C=a word # not in quotes\n');
    await svc.ok(['serve', 'up', file, '-n', 'envs', '--env', 'A', '--env', 'B=x=y', '--env-file', variables], { env: { A: "it's" } });
    const { endpoint } = await svc.ready('envs', 1);
    expect(await (await fetch(`${endpoint}/answer.txt`)).text()).toBe("it's, x=y, a word\n");
    await svc.end();
  });
});

test.for(['examples/vllm/service.yaml', 'examples/tgi/service.yaml'])('%s is refused clearly where there is no GPU', async (file) => {
  await withSvc(async (svc) => {
    const { code, stderr } = await svc.run(['serve', 'up', file, '--secret', 'HF_TOKEN'], { env: { HF_TOKEN: 'hf-secret' } });
    expect([code, /^code: (\S+)$/m.exec(stderr)?.[1]]).toEqual([6, 'SVC_NO_GPU']);
    expect(stderr).toMatch(/svc check/);
    expect(stderr).not.toContain('hf-secret');
    expect(await svc.services()).toEqual([]);
    await svc.end();
  });
});
