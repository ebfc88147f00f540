import { expect, test } from 'vitest';
import { type TreeEntry, parseRemoteTree, planCopy } from './tar-copy.ts';

const file = (change: Partial<TreeEntry> = {}): TreeEntry => ({ kind: 'f', mode: 0o644, size: 3, mtimeMs: 1_000, content: '', ...change });
const folder: TreeEntry = { kind: 'd', mode: 0o755, size: 0, mtimeMs: 0, content: '' };
const link = (content: string): TreeEntry => ({ kind: 'l', mode: 0o777, size: 1, mtimeMs: 0, content });

test('only new files and files with another size, time, mode or target are sent', () => {
  const local = new Map([
    ['', folder],
    ['same', file()],
    ['new', file()],
    ['size', file()],
    ['time', file()],
    ['mode', file()],
    ['link', link('a')],
    ['same link', link('a')],
  ]);
  const remote = new Map([
    ['same', file({ mtimeMs: 1_000.4 })],
    ['size', file({ size: 4 })],
    ['time', file({ mtimeMs: 2_000 })],
    ['mode', file({ mode: 0o600 })],
    ['link', link('b')],
    ['same link', link('a')],
  ]);
  expect(planCopy(local, remote, { keepExtra: false, isShared: false })).toEqual({
    send: ['', 'new', 'size', 'time', 'mode', 'link'],
    remove: [],
  });
});

test('extra entries are removed unless kept; entries of another kind are always removed', () => {
  const local = new Map([['a', file()]]);
  const remote = new Map([
    ['a', folder],
    ['a/b', file()],
    ['pipe', undefined],
  ]);
  expect(planCopy(local, remote, { keepExtra: false, isShared: false })).toEqual({ send: ['a'], remove: ['a', 'a/b', 'pipe'] });
  expect(planCopy(local, remote, { keepExtra: true, isShared: false })).toEqual({ send: ['a'], remove: ['a'] });
});

test('a listing with arbitrary bytes in names is parsed', () => {
  const entries = [
    ['odd\n"name', 'f', '644', '3', '1.5', ''],
    ['li nk', 'l', '777', '1', '0', 'to'],
    ['pipe', 'p', '644', '0', '0', ''],
  ];
  const listing = Buffer.from(
    entries
      .flat()
      .map((field) => `${field}\0`)
      .join(''),
  );
  expect([...parseRemoteTree(listing)]).toEqual([
    ['odd\n"name', file({ mtimeMs: 1_500 })],
    ['li nk', link('to')],
    ['pipe', undefined],
  ]);
});
