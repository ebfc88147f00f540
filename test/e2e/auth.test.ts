import { globSync, readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, test } from 'vitest';
import { hasErrno } from '../../src/shared/errors.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { processesOf } from '../support/leaks.ts';

const token = 'tok-5f0c1b7e9d3a4286';

/** Returns every file below the home that contains the token, with its mode. */
function filesWithToken(home: string): readonly string[] {
  return globSync(`${home}/**/{*,.*}`, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .filter((path) => contentOf(path).includes(token));
}

/** Empty for a file that was removed meanwhile: log rotation and atomic writes replace files. */
function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return '';
    throw error;
  }
}

async function expectSecrecy(svc: Svc): Promise<void> {
  const listings = [
    ['serve', 'status'],
    ['serve', 'status', '--json'],
    ['serve', 'events', 'auth'],
    ['serve', 'logs', 'auth', '1', '--no-follow'],
    ['serve', 'logs', 'auth', '--controller', '--no-follow'],
    ['serve', 'logs', 'auth', '--load-balancer', '--no-follow'],
    ['status'],
  ];
  for (const listing of listings) expect(await svc.ok(listing)).not.toContain(token);
  expect(processesOf(svc.home).filter(({ command }) => command.includes(token))).toEqual([]);
  for (const path of filesWithToken(svc.home)) {
    // svc must store the token for the next replica: readable by its owner only, and in no log.
    expect((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077).toBe(0);
    expect(basename(path)).not.toMatch(/log/);
  }
}

test.for(['--env', '--secret'])('a key given with %s guards the replicas and appears in no output', async (option) => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/auth/service.yaml', '-n', 'auth', option, 'AUTH_TOKEN'], { env: { AUTH_TOKEN: token } });
    const { endpoint } = await svc.ready('auth', 2);
    const ask = async (headers: Record<string, string>): Promise<readonly [number, string]> => {
      const reply = await fetch(endpoint, { headers });
      return [reply.status, await reply.text()];
    };
    const refusal = [401, '{"error":"Unauthorized"}'];
    expect(await ask({})).toEqual(refusal);
    expect(await ask({ authorization: 'Bearer wrong' })).toEqual(refusal);
    expect(await ask({ authorization: `Bearer ${token}x` })).toEqual(refusal);
    expect((await ask({ authorization: `Bearer ${token}` }))[0]).toBe(200);
    await expectSecrecy(svc);
    await svc.end();
    expect(filesWithToken(svc.home).filter((path) => !path.startsWith(`${svc.home}/state.db`))).toEqual([]);
  });
});

test('a missing key is reported by name, and the command starts nothing', async () => {
  await withSvc(async (svc) => {
    const { code, stderr } = await svc.run(['serve', 'up', 'examples/auth/service.yaml']);
    expect(code).toBe(2);
    expect(stderr).toContain('SVC_MISSING_ENV');
    expect(stderr).toContain('AUTH_TOKEN');
    expect(await svc.services()).toEqual([]);
  });
});
