import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { processesOf } from '../support/leaks.ts';

const serving = 'run: python3 -m http.server 8080\n';
const withPort = `service: {}\nresources:\n  ports: 8080\n${serving}`;

/** The command and the file, and the expected refusal. */
interface Refusal {
  readonly name: string;
  readonly file?: string;
  readonly args?: readonly string[];
  readonly code: string;
  readonly exit: number;
  readonly says: RegExp;
}

const refusals: readonly Refusal[] = [
  { name: 'a bad name', args: ['-n', '1chat'], code: 'SVC_BAD_NAME', exit: 2, says: /'1chat'/ },
  { name: 'a name with a slash', args: ['-n', '../x'], code: 'SVC_BAD_NAME', exit: 2, says: /'\.\.\/x'/ },
  {
    name: 'a value that is missing',
    file: `envs:\n  KEY: null\n${withPort}`,
    code: 'SVC_MISSING_ENV',
    exit: 2,
    says: /KEY/,
  },
  { name: 'a variable that is not set', args: ['--env', 'SVC_NOT_SET_HERE'], code: 'SVC_MISSING_ENV', exit: 2, says: /SVC_NOT_SET_HERE/ },
  { name: 'no port', file: `service: {}\n${serving}`, code: 'SVC_INVALID_TASK', exit: 2, says: /port/ },
  {
    name: 'a probe path without a slash',
    file: `service:\n  readiness_probe: health\nresources:\n  ports: 8080\n${serving}`,
    code: 'SVC_INVALID_TASK',
    exit: 2,
    says: /service\.yaml:2:\d+:.*\//s,
  },
  {
    name: 'a misspelt field',
    file: `service:\n  replica: 2\nresources:\n  ports: 8080\n${serving}`,
    code: 'SVC_INVALID_TASK',
    exit: 2,
    says: /service\.yaml:2:\d+:.*'?replicas'?/s,
  },
  { name: 'not a service', file: serving, code: 'SVC_INVALID_TASK', exit: 2, says: /service/ },
  { name: 'no YAML', file: 'service: [}\n', code: 'SVC_INVALID_TASK', exit: 2, says: /service\.yaml:1:/ },
  {
    name: 'GPUs where there are none',
    file: `service: {}\nresources:\n  ports: 8080\n  accelerators: H100:8\n${serving}`,
    code: 'SVC_NO_GPU',
    exit: 6,
    says: /H100/,
  },
  {
    name: 'more memory than there is',
    file: `service: {}\nresources:\n  ports: 8080\n  memory: 900000+\n${serving}`,
    code: 'SVC_NO_PLACE',
    exit: 6,
    says: /900000|memory/,
  },
  {
    name: 'a workdir that is not there',
    file: `${withPort}workdir: ./nowhere\n`,
    code: 'SVC_FILE_NOT_FOUND',
    exit: 3,
    says: /nowhere/,
  },
];

test.for(refusals)('up refuses $name with $code and leaves nothing half made', async ({ file, args, code, exit, says }) => {
  await withSvc(async (svc) => {
    const path = svc.file('service.yaml', file ?? withPort);
    const text = await svc.run(['serve', 'up', path, ...(args ?? [])]);
    expect({ exit: text.code, code: /^code: (\S+)$/m.exec(text.stderr)?.[1], stdout: text.stdout }).toEqual({ exit, code, stdout: '' });
    expect(text.stderr).toMatch(says);
    expect(text.stderr).toMatch(/^hint: .{10}/m);

    const json = await svc.run(['serve', 'up', path, ...(args ?? []), '--json']);
    expect(json.code).toBe(exit);
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { code } });

    expect(await svc.services()).toEqual([]);
    expect(readdirSync(svc.home).includes('services') ? readdirSync(join(svc.home, 'services')) : []).toEqual([]);
    await svc.end();
  });
});

test('a missing file is refused before any process starts', async () => {
  await withSvc(async (svc) => {
    const { code, stderr } = await svc.run(['serve', 'up', 'nowhere.yaml']);
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('nowhere.yaml') });
    expect(stderr).toContain('SVC_FILE_NOT_FOUND');
    expect(processesOf(svc.home)).toEqual([]);
  });
});

test('a name in use is refused, and its service continues', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
    const before = await svc.ready('hello', 2);
    const { code, stderr } = await svc.run(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
    expect(code).toBe(4);
    expect(stderr).toMatch(/'?hello'?[\s\S]*code: SVC_NAME_IN_USE/);
    const after = await svc.service('hello');
    expect(after.replicas.map(({ id, status }) => [id, status])).toEqual(before.replicas.map(({ id, status }) => [id, status]));
    await svc.end();
  });
});

test('a port in use is refused, whichever process has it', async () => {
  await withSvc(async (svc) => {
    const squatter = createServer().listen(0, '127.0.0.1');
    await new Promise((listening) => squatter.once('listening', listening));
    const address = squatter.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const path = svc.file('service.yaml', withPort.replace('service: {}', `service:\n  load_balancer:\n    port: ${port}`));
    const { code, stderr } = await svc.run(['serve', 'up', path]);
    squatter.close();
    expect({ code, named: stderr.includes(String(port)), known: stderr.includes('SVC_PORT_BUSY') }).toEqual({
      code: 4,
      named: true,
      known: true,
    });
    expect(await svc.services()).toEqual([]);
    await svc.end();
  });
});

// Only root can make a disk that is nearly full.
test.skipIf(process.getuid?.() !== 0)('a full disk is reported as such, and nothing half made remains', async () => {
  await withSvc(async (svc) => {
    const disk = join(svc.home, 'disk');
    execFileSync('mkdir', [disk]);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=0700', 'svc-test', disk]);
    try {
      svc.file('service.yaml', `${withPort}workdir: .\n`);
      writeFileSync(join(svc.home, 'files', 'weights'), Buffer.alloc(20_000_000));
      const onDisk = { env: { SVC_HOME: join(disk, 'home') } };
      const { code, stderr } = await svc.run(['serve', 'up', join(svc.home, 'files', 'service.yaml')], onDisk);
      expect({ code, known: stderr.includes('SVC_NO_SPACE') }).toEqual({ code: 6, known: true });
      expect(JSON.parse(await svc.ok(['serve', 'status', '--json'], onDisk))).toMatchObject({
        services: [],
        disk: { folder: join(disk, 'home') },
      });
      await svc.ok(['controller', 'stop'], onDisk);
    } finally {
      execFileSync('umount', ['--lazy', disk]);
    }
  });
});

test.for([
  { args: ['serve', 'down', 'nothing', '-y'], code: 3, says: 'SVC_SERVICE_NOT_FOUND' },
  { args: ['serve', 'logs', 'nothing', '1'], code: 3, says: 'SVC_SERVICE_NOT_FOUND' },
  { args: ['serve', 'events', 'nothing'], code: 3, says: 'SVC_SERVICE_NOT_FOUND' },
  { args: ['serve', 'status', '--endpoint', 'nothing'], code: 3, says: 'SVC_SERVICE_NOT_FOUND' },
  { args: ['serve', 'terminate-replica', 'nothing', '1', '-y'], code: 3, says: 'SVC_SERVICE_NOT_FOUND' },
  { args: ['down', 'nothing', '-y'], code: 3, says: 'SVC_CLUSTER_NOT_FOUND' },
  { args: ['exec', 'nothing', '--', 'true'], code: 3, says: 'SVC_CLUSTER_NOT_FOUND' },
  { args: ['serve', 'upp', 'x.yaml'], code: 2, says: 'SVC_USAGE' },
  { args: ['serve', 'up', '--nmae', 'x', 'x.yaml'], code: 2, says: 'SVC_USAGE' },
])('svc $args ends with $code and $says', async ({ args, code, says }) => {
  await withSvc(async (svc) => {
    const result = await svc.run(args);
    expect({ code: result.code, says: result.stderr.includes(says) }).toEqual({ code, says: true });
  });
});

test('destructive commands ask on a terminal and need --yes without one', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
    const piped = await svc.run(['serve', 'down', 'hello']);
    expect({ code: piped.code, known: piped.stderr.includes('SVC_CONFIRM_NEEDED') }).toEqual({ code: 2, known: true });
    const refused = await svc.run(['serve', 'down', 'hello'], { tty: true, input: 'n\n' });
    expect(refused.code).not.toBe(0);
    expect((await svc.services()).map(({ name }) => name)).toEqual(['hello']);
    await svc.end();
  });
});
