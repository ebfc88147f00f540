import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describeObjects } from './json-schemas.ts';
import { routeNames, routes } from './routes.ts';

const page = readFileSync('docs/reference/api.md', 'utf8');

test('the reference documents each route and each object', () => {
  const rows = routeNames.filter((name) =>
    page.includes(`| [${name}](#${name.toLowerCase()}) | \`${routes[name].method} ${routes[name].path}\` |`),
  );
  expect(rows).toEqual(routeNames);
  const sections = [...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name);
  expect(sections).toEqual([...routeNames, ...Object.keys(describeObjects())]);
});
