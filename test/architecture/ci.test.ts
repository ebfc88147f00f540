import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, test } from 'vitest';

test('.ci/run names every Kubernetes test file exactly once', () => {
  const script = readFileSync('.ci/run', 'utf8');
  const [, names = ''] = /^kubernetes_tests=\(([\w -]+)\)$/m.exec(script) ?? [];
  const files = globSync('test/kubernetes/**/*.test.ts').map((path) => basename(path, '.test.ts'));
  expect(names.split(' ').toSorted()).toEqual(files.toSorted());
});
