import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { entryPath, programEntries, programEntry, programFile, threadEntry } from './program-files.ts';

test.each(programEntries)('%s is a file of this checkout', (entry) => {
  expect(existsSync(programEntry(entry))).toBe(true);
  expect(existsSync(threadEntry(entry))).toBe(true);
});

test('files that svc copies to machines exist in this checkout', () => {
  for (const name of ['src/node/runner.sh', 'package.json']) expect(existsSync(programFile(name))).toBe(true);
});

test('bundle entries share a folder two levels below the bundle', () => {
  expect(programEntries.map((entry) => entryPath(entry, true))).toEqual([
    'src/bundle/balancer-main.js',
    'src/bundle/balancer-threads-thread.js',
    'src/bundle/controller-edge-proxy-health-checker.js',
    'src/bundle/controller-edge-proxy-main.js',
    'src/bundle/controller-leadership-keeper.js',
    'src/bundle/controller-main.js',
    'src/bundle/controller-service-main.js',
    'src/bundle/node-egress.js',
    'src/bundle/remote-kubernetes-forwarder.js',
  ]);
});
