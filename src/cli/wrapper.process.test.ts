import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';

const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
const minutesMs = 60_000;

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A checkout with the real wrapper, a program that prints its arguments, and an npm that records its calls. */
class Checkout {
  readonly root: string;
  readonly tools: string;
  readonly npmLog: string;

  constructor(root: string) {
    this.root = join(root, 'checkout');
    this.tools = join(root, 'tools');
    this.npmLog = join(root, 'npm.log');
    mkdirSync(join(this.root, 'src/cli'), { recursive: true });
    mkdirSync(this.tools);
    cpSync(join(import.meta.dirname, '../../svc'), join(this.root, 'svc'));
    writeFileSync(join(this.root, 'package-lock.json'), '{}');
    writeFileSync(
      join(this.root, 'src/cli/main.ts'),
      'console.log(JSON.stringify({ args: process.argv.slice(2), cache: process.env["NODE_COMPILE_CACHE"] ?? null, name: process.env["SVC_INVOKED_AS"], node: process.argv0 }));',
    );
    this.npm(this.installing());
  }

  get runtime(): string {
    return join(this.root, `node_modules/node-linux-${arch}/bin/node`);
  }

  get lock(): string {
    return join(this.root, '.install.lock');
  }

  /** An npm script for a machine that can install the pinned runtime. */
  installing(): string {
    return `mkdir -p "${join(this.runtime, '..')}" && ln -sf "${process.execPath}" "${this.runtime}" && echo '{}' > node_modules/.package-lock.json`;
  }

  npm(script: string): void {
    this.tool('npm', `echo "$PWD $*" >> "${this.npmLog}"; echo "npm says hello"; ${script}`);
  }

  tool(name: string, script: string): void {
    writeFileSync(join(this.tools, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(this.tools, name), 0o755);
  }

  /** Makes the lock file newer than the installation, as a pull does. */
  pull(): void {
    const later = new Date(Date.now() + minutesMs);
    utimesSync(join(this.root, 'package-lock.json'), later, later);
  }

  installs(): readonly string[] {
    return existsSync(this.npmLog) ? readFileSync(this.npmLog, 'utf8').trim().split('\n') : [];
  }

  async run(
    args: readonly string[] = [],
    options: { readonly path?: string; readonly env?: Record<string, string | undefined>; readonly uid?: number } = {},
  ): Promise<Result> {
    const child = spawn(options.path ?? join(this.root, 'svc'), args, {
      env: { PATH: `${this.tools}:/usr/bin:/bin`, HOME: join(this.root, '..'), ...options.env },
      ...(options.uid !== undefined && { uid: options.uid, gid: options.uid }),
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => (stdout += String(chunk)));
    child.stderr.on('data', (chunk) => (stderr += String(chunk)));
    const [code] = await once(child, 'close');
    return { code: typeof code === 'number' ? code : null, stdout, stderr };
  }
}

function withCheckout(use: (checkout: Checkout) => Promise<void>): Promise<void> {
  return withTempHome((home) => use(new Checkout(home)));
}

test('the first run installs packages without devDependencies and reports it on standard error', async () => {
  await withCheckout(async (checkout) => {
    const { code, stdout, stderr } = await checkout.run(['serve', 'up', 'a b', '']);
    expect({ code, args: JSON.parse(stdout).args }).toEqual({ code: 0, args: ['serve', 'up', 'a b', ''] });
    expect(stderr).toBe('svc: installing packages (npm ci), once\nnpm says hello\n');
    expect(checkout.installs()).toEqual([
      `${checkout.root} ci --omit=dev --include=optional --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error`,
    ]);
    expect(existsSync(checkout.lock)).toBe(false);
  });
});

test('the second run installs nothing, also through a symbolic link', async () => {
  await withCheckout(async (checkout) => {
    await checkout.run();
    symlinkSync(join(checkout.root, 'svc'), join(checkout.tools, 'svc'));
    const { code, stderr } = await checkout.run([], { path: join(checkout.tools, 'svc') });
    expect({ code, stderr, installs: checkout.installs().length }).toEqual({ code: 0, stderr: '', installs: 1 });
  });
});

test('a newer lock file triggers an installation that keeps devDependencies', async () => {
  await withCheckout(async (checkout) => {
    await checkout.run();
    writeFileSync(join(checkout.root, 'node_modules/.package-lock.json'), '{ "packages": { "x": {\n "dev": true\n } } }');
    checkout.pull();
    expect((await checkout.run()).code).toBe(0);
    expect(checkout.installs().at(-1)).toContain(' ci --include=dev ');
  });
});

test('a node_modules that links to another folder is not changed', async () => {
  await withCheckout(async (checkout) => {
    await checkout.run();
    renameSync(join(checkout.root, 'node_modules'), join(checkout.tools, 'node_modules'));
    symlinkSync(join(checkout.tools, 'node_modules'), join(checkout.root, 'node_modules'));
    expect((await checkout.run()).code).toBe(0);
    checkout.pull();
    expect(await checkout.run()).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('is a link to the packages of another folder'),
    });
    expect(checkout.installs()).toHaveLength(1);
  });
});

test('of several concurrent first runs one installs and all succeed', async () => {
  await withCheckout(async (checkout) => {
    checkout.npm(`sleep 0.5; ${checkout.installing()}`);
    const results = await Promise.all(Array.from({ length: 4 }, () => checkout.run(['x'])));
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(checkout.installs()).toHaveLength(1);
  });
});

test.for(['of a process that died', 'that is older than five minutes'])('a lock %s is removed', async (kind) => {
  await withCheckout(async (checkout) => {
    mkdirSync(checkout.lock);
    if (kind === 'of a process that died') writeFileSync(join(checkout.lock, 'pid'), String(2 ** 22 + 1));
    else {
      writeFileSync(join(checkout.lock, 'pid'), String(process.pid));
      const before = new Date(Date.now() - 6 * minutesMs);
      utimesSync(checkout.lock, before, before);
    }
    expect((await checkout.run()).code).toBe(0);
    expect(existsSync(checkout.lock)).toBe(false);
  });
});

test("of several processes that find a dead process's lock, exactly one installs", async () => {
  await withCheckout(async (checkout) => {
    mkdirSync(checkout.lock);
    writeFileSync(join(checkout.lock, 'pid'), String(2 ** 22 + 1));
    // All processes read the lock before the first one removes it. The others act after the first has begun to install.
    checkout.tool('cat', '/usr/bin/cat "$@"; sleep 0.3');
    checkout.tool('rm', `mkdir "${checkout.tools}/first" 2>/dev/null || sleep 0.3; exec /usr/bin/rm "$@"`);
    checkout.npm(`sleep 1; ${checkout.installing()}`);
    const results = await Promise.all([1, 2, 3].map(() => checkout.run()));
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(checkout.installs()).toHaveLength(1);
    expect([checkout.lock, `${checkout.lock}.break`].map(existsSync)).toEqual([false, false]);
  });
});

test('a failed installation is an error, and the next run retries it', async () => {
  await withCheckout(async (checkout) => {
    checkout.npm('echo network is down >&2; exit 1');
    const failed = await checkout.run();
    expect({ code: failed.code, stdout: failed.stdout }).toEqual({ code: 69, stdout: '' });
    expect(failed.stderr).toMatch(/network is down[\s\S]*could not be installed/);
    checkout.npm(checkout.installing());
    expect((await checkout.run()).code).toBe(0);
  });
});

test('without npm the first run fails with a hint', async () => {
  await withCheckout(async (checkout) => {
    rmSync(join(checkout.tools, 'npm'));
    for (const tool of ['readlink', 'dirname', 'uname', 'rm', 'sh']) symlinkSync(`/usr/bin/${tool}`, join(checkout.tools, tool));
    const { code, stderr } = await checkout.run([], { env: { PATH: checkout.tools } });
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining('needs npm') });
  });
});

test('without the pinned runtime, a recent Node.js on PATH is used without another installation', async () => {
  await withCheckout(async (checkout) => {
    checkout.npm(`mkdir -p node_modules && echo '{}' > node_modules/.package-lock.json`);
    symlinkSync(process.execPath, join(checkout.tools, 'node'));
    for (const _ of [1, 2]) {
      const { code, stdout } = await checkout.run(['x']);
      expect({ code, args: JSON.parse(stdout).args }).toEqual({ code: 0, args: ['x'] });
    }
    expect(checkout.installs()).toHaveLength(1);
  });
});

test('when the pinned runtime cannot run, the one on PATH is used', async () => {
  await withCheckout(async (checkout) => {
    checkout.npm(
      `${checkout.installing()}; rm "${checkout.runtime}"; printf 'not a program' > "${checkout.runtime}"; chmod +x "${checkout.runtime}"`,
    );
    symlinkSync(process.execPath, join(checkout.tools, 'node'));
    for (const _ of [1, 2]) expect(await checkout.run()).toMatchObject({ code: 0, stdout: expect.stringContaining('"node":"node"') });
    expect(checkout.installs()).toHaveLength(1);
  });
});

test('an old Node.js on PATH is not used', async () => {
  await withCheckout(async (checkout) => {
    checkout.npm(`mkdir -p node_modules && echo '{}' > node_modules/.package-lock.json`);
    checkout.tool('node', 'exit 1');
    expect(await checkout.run()).toMatchObject({ code: 69, stdout: '', stderr: expect.stringContaining('Node.js >= 24.12') });
  });
});

// Only root can switch to another user, and root could write to the checkout.
test.skipIf(process.getuid?.() !== 0)('a read-only checkout is an error with its path and the fix', async () => {
  await withCheckout(async (checkout) => {
    chmodSync(join(checkout.root, '..'), 0o755);
    const { code, stderr } = await checkout.run([], { uid: 65_534 });
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining(`${checkout.root} is not writable`) });
    expect(stderr).toContain(`cd ${checkout.root} && npm ci --omit=dev`);
  });
});

test('without a usable HOME, svc runs without a compile cache', async () => {
  await withCheckout(async (checkout) => {
    const cacheWith = async (env: Record<string, string | undefined>): Promise<unknown> =>
      JSON.parse((await checkout.run([], { env })).stdout).cache;
    expect(await cacheWith({ HOME: undefined })).toBe(null);
    expect(await cacheWith({ HOME: join(checkout.root, 'nowhere') })).toBe(null);
    expect(await cacheWith({ HOME: join(checkout.root, 'svc') })).toBe(null);
    expect(await cacheWith({ HOME: checkout.root })).toBe(`${checkout.root}/.cache/svc/compile`);
    expect(await cacheWith({ HOME: checkout.root, XDG_CACHE_HOME: checkout.tools })).toBe(`${checkout.tools}/svc/compile`);
    expect(await cacheWith({ NODE_COMPILE_CACHE: '/elsewhere' })).toBe('/elsewhere');
  });
});

test('npm does not create a missing home folder', async () => {
  await withCheckout(async (checkout) => {
    checkout.npm(`echo "cache $npm_config_cache" >> "${checkout.npmLog}"; ${checkout.installing()}`);
    const home = join(checkout.root, 'nowhere');
    expect((await checkout.run([], { env: { HOME: home } })).code).toBe(0);
    expect(checkout.installs().at(-1)).toBe(`cache ${checkout.lock}/npm`);
    expect([home, checkout.lock].map(existsSync)).toEqual([false, false]);
  });
});

test('svc passes on its name if PATH finds it, otherwise its path', async () => {
  await withCheckout(async (checkout) => {
    const path = join(checkout.root, 'svc');
    const nameFor = async (called: string, env: Record<string, string | undefined> = {}): Promise<unknown> =>
      JSON.parse((await checkout.run([], { path: called, env })).stdout).name;
    expect(await nameFor(path)).toBe(path);
    const other = join(checkout.tools, 'svc');
    checkout.tool('svc', 'echo another program');
    expect(await nameFor(path)).toBe(path);
    rmSync(other);
    symlinkSync(path, other);
    expect([await nameFor(path), await nameFor(other), await nameFor('svc')]).toEqual(['svc', 'svc', 'svc']);
    expect(await nameFor(other, { PATH: '/usr/bin:/bin' })).toBe(other);
  });
});
