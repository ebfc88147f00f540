import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { getuid } from 'node:process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { readTree, setTime, writeTree, type TreeSpec } from '../../../test/support/trees.ts';
import { DirectoryStore } from '../../buckets/directory.ts';
import type { ObjectStore } from '../../buckets/object-store.ts';
import { LocalRemote, type LocalRemoteSettings } from '../../remote/local.ts';
import type { ExecOptions, ExecResult } from '../../remote/remote.ts';
import { systemClock } from '../../shared/clock.ts';
import { fetchTree } from './fetch.ts';
import { publishTree, type PublishProgress } from './publish.ts';
import { planFetch } from './address-source.ts';

interface World {
  readonly store: ObjectStore;
  readonly source: string;
  readonly target: string;
  /** Publishes the source's present content under a new name; returns the last progress report. */
  readonly publish: () => Promise<PublishProgress | undefined>;
  /** Downloads the last publication. */
  readonly fetch: (how?: { readonly merge?: boolean; readonly asUser?: boolean }) => Promise<void>;
}

/** A machine whose commands run as a user other than root. */
class UnprivilegedRemote extends LocalRemote {
  override exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult> {
    return super.exec(['setpriv', '--reuid=1000', '--regid=1000', '--clear-groups', ...argv], options);
  }

  override async writeFile(path: string, content: string, mode?: number): Promise<void> {
    await super.writeFile(path, content, mode);
    execFileSync('chown', ['-R', '1000:1000', dirname(path)]);
  }
}

/** Lets the unprivileged user read the publication and write the machine's folder. */
function chownAll(home: string): void {
  mkdirSync(join(home, 'machine'), { recursive: true });
  execFileSync('chmod', ['a+rx', home]);
  execFileSync('chmod', ['-R', 'a+rX', join(home, 'buckets')]);
  execFileSync('chown', ['-R', '1000:1000', join(home, 'machine')]);
}

async function withWorld(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const store = new DirectoryStore(join(home, 'buckets'), 'svc-test');
    await store.createBucket({ tags: {}, expireDays: 1 });
    const machine: LocalRemoteSettings = {
      baseDir: home,
      enter: [],
      environment: {},
      address: () => ({ kind: 'tcp', host: '127.0.0.1', port: 1 }),
      clock: systemClock,
    };
    const [source, target] = [join(home, 'source'), join(home, 'machine/work dir')];
    let version = 0;
    await use({
      store,
      source,
      target,
      async publish() {
        version += 1;
        let last: PublishProgress | undefined;
        await publishTree(store, `v${version}`, source, { onProgress: (progress) => (last = progress) });
        return last;
      },
      async fetch({ merge = false, asUser = false } = {}) {
        const manifest = await publishTree(store, `v${version}`, join(home, 'not-read-again'));
        const destination = { path: target, merge, workDir: join(home, 'machine/files') };
        if (asUser) chownAll(home);
        await fetchTree(
          asUser ? new UnprivilegedRemote(machine) : new LocalRemote(machine),
          planFetch(store, manifest),
          destination,
          new AbortController().signal,
        );
      },
    });
    for (const folder of [source, target]) if (existsSync(folder)) execFileSync('chmod', ['-R', 'u+rwX', folder]);
  });
}

const oddNames: TreeSpec = {
  'plain.txt': 'plain',
  'with space/ü漢🙂.txt': 'unicode',
  'new\nline/two\nlines': 'newlines',
  '-rf': 'a dash',
  'it\'s "$HOME" `x` \\': 'quotes',
  [`${'long'.repeat(40)}/${'deep'.repeat(50)}`]: 'longer than the field of an archive',
  'empty file': '',
  'empty folder': { mode: 0o755 },
  'run.sh': { mode: 0o755, text: '#!/bin/sh\n' },
  'closed/only read': { mode: 0o444, text: 'x' },
  closed: { mode: 0o555 },
  private: { mode: 0o700 },
  'private/key': { mode: 0o600, text: 'k' },
  'to plain': { link: 'plain.txt' },
  'with space/up': { link: '../plain.txt' },
  outside: { link: '/usr/bin/env' },
  [`far ${'away'.repeat(40)}`]: { link: `${'x'.repeat(150)}/y` },
  'large one.bin': 'L'.repeat(1_500_000),
  'copies/large.bin': { mode: 0o755, text: 'L'.repeat(1_500_000) },
};

test('a tree arrives with its names, modes, times, links and empty folders', async () => {
  await withWorld(async ({ source, target, publish, fetch }) => {
    writeTree(source, oddNames);
    setTime(join(source, 'plain.txt'), 1_600_000_000);
    setTime(join(source, 'large one.bin'), 1_500_000_000);
    await publish();
    await fetch();
    expect(readTree(target)).toEqual(readTree(source));
  });
});

test('a mount of one file arrives as one file', async () => {
  await withWorld(async ({ source, target, publish, fetch }) => {
    writeFileSync(source, 'tokens', { mode: 0o640 });
    await publish();
    await fetch();
    expect([readFileSync(target, 'utf8'), existsSync(`${target}/`)]).toEqual(['tokens', false]);
    expect(readTree(target)).toEqual(readTree(source));
  });
});

test('a second publication uploads only new content, even after neighbouring changes', async () => {
  await withWorld(async ({ source, target, publish, fetch }) => {
    writeTree(source, { 'a.txt': 'a'.repeat(100_000), 'b.txt': 'b', 'big.bin': 'B'.repeat(2_000_000) });
    const first = await publish();
    expect([first?.files, first?.totalFiles, first?.bytes]).toEqual([3, 3, 2_100_001]);
    expect(first?.sentBytes).toBeGreaterThan(2_100_000);
    writeTree(source, { 'b.txt': 'changed', 'new/c.txt': 'c' });
    renameSync(join(source, 'big.bin'), join(source, 'moved.bin'));
    const second = await publish();
    expect(second?.sentBytes).toBeLessThan(10_000);
    await fetch();
    expect(readTree(target)).toEqual(readTree(source));
    expect((await publish())?.sentBytes).toBe(0);
  });
});

test('files missing in the tree are removed, except when merging', async () => {
  await withWorld(async ({ source, target, publish, fetch }) => {
    writeTree(source, { 'a.txt': 'a', 'gone/b.txt': 'b', 'file-then-folder': 'x', 'stays/c.txt': 'c' });
    await publish();
    await fetch();
    for (const name of ['gone', 'file-then-folder']) rmSync(join(source, name), { recursive: true });
    writeTree(source, { 'file-then-folder/now': 'folder', 'd.txt': 'd' });
    await publish();
    writeFileSync(join(target, 'written by the program'), 'w');
    await fetch();
    expect(readTree(target)).toEqual(readTree(source));
    writeFileSync(join(target, 'written by the program'), 'w');
    chmodSync(target, 0o711);
    renameSync(join(target, 'stays'), join(target, 'elsewhere'));
    symlinkSync('elsewhere', join(target, 'stays'));
    await publish();
    await fetch({ merge: true });
    expect(existsSync(join(target, 'written by the program'))).toBe(true);
    expect(statSync(target).mode & 0o777).toBe(0o711);
    expect(lstatSync(join(target, 'stays')).isSymbolicLink()).toBe(true);
  });
});

test.runIf(getuid?.() === 0)('an unprivileged user can fetch, replace and merge a tree with read-only folders', async () => {
  await withWorld(async ({ source, target, publish, fetch }) => {
    writeTree(source, {
      'closed/deep/x': 'x',
      'closed/deep': { mode: 0o555 },
      closed: { mode: 0o555 },
      big: { mode: 0o400, text: 'B'.repeat(2_000_000) },
    });
    await publish();
    await fetch({ asUser: true });
    chmodSync(join(source, 'closed'), 0o755);
    writeTree(source, { 'closed/new': 'new', 'closed/deep': { mode: 0o500 } });
    await publish();
    for (const merge of [false, true]) {
      await fetch({ asUser: true, merge });
      expect(readTree(target)).toEqual(readTree(source));
    }
  });
});

test('a second fetch changes nothing and leaves no temporary files', async () => {
  await withWorld(async ({ source, target, publish, fetch }) => {
    writeTree(source, { 'a.txt': 'a' });
    await publish();
    await fetch();
    await fetch();
    expect(readTree(target)).toEqual(readTree(source));
    expect(readdirSync(join(target, '../files')).toSorted()).toEqual(['done', 'fetch.sh']);
  });
});

test('an object with wrong content is not unpacked', async () => {
  await withWorld(async ({ store, source, target, publish, fetch }) => {
    writeTree(source, { 'a.txt': 'a' });
    await publish();
    for await (const { key, size } of store.list('packs/')) await store.put(key, Buffer.alloc(size));
    await expect(fetch()).rejects.toMatchObject({ code: 'SVC_BUCKET', message: expect.stringContaining('not what it should be') });
    expect(existsSync(target)).toBe(false);
  });
});

const aName = fc.constantFrom('a', 'b', 'c', 'd e', 'f\ng', 'ü');
const aPath = fc.array(aName, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const aThing = fc.oneof(
  fc.record({ mode: fc.constantFrom(0o644, 0o755, 0o400), text: fc.string({ maxLength: 20 }) }),
  fc.record({ link: fc.constantFrom('a', '../b', '/etc/hostname') }),
  fc.record({ mode: fc.constantFrom(0o755, 0o500) }),
);
const aTree = fc.uniqueArray(fc.tuple(aPath, aThing), { maxLength: 8, selector: ([path]) => path });

test('after any change of a tree, a fetch makes the machine equal to it', async () => {
  const property = fc.asyncProperty(fc.array(aTree, { minLength: 1, maxLength: 4 }), (versions) =>
    withWorld(async ({ source, target, publish, fetch }) => {
      for (const version of versions) {
        if (existsSync(source)) {
          execFileSync('chmod', ['-R', 'u+rwX', source]);
          rmSync(source, { recursive: true });
        }
        writeTree(source, {});
        for (const [path, thing] of version) {
          try {
            writeTree(source, { [path]: thing });
          } catch {
            // A file blocks the path.
          }
        }
        chmodSync(source, 0o755);
        await publish();
        await fetch();
        expect(readTree(target)).toEqual(readTree(source));
      }
    }),
  );
  await fc.assert(property, { numRuns: 25 });
});
