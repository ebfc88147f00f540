import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, test } from 'vitest';

test('.ci/run runs every file of tests of clusters: it has them by name, for two lanes that take about as long', () => {
  const script = readFileSync('.ci/run', 'utf8');
  const named = [...script.matchAll(/kubernetes_files kubernetes_\w+ ([\w -]+);/g)].flatMap(([, names = '']) => names.split(' '));
  const files = globSync('test/kubernetes/**/*.test.ts').map((path) => basename(path, '.test.ts'));
  expect(named.toSorted()).toEqual(files.toSorted());
});
