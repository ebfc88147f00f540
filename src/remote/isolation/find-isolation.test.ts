import { expect, test } from 'vitest';
import { findIsolation, kindsFor, type TriedComputer } from './find-isolation.ts';

/** A computer on which exactly these pairs of isolation kind and outbound kind work. */
function computerWith(working: readonly string[], hasRoute = true): TriedComputer {
  return {
    hasRoute: () => hasRoute,
    whyNot: async (kind, outbound) => (working.includes(`${kind} ${outbound}`) ? undefined : `no ${outbound} in ${kind}`),
  };
}

test.for<
  readonly [what: string, working: readonly string[], hasRoute: boolean, kind: string, outbound: string, refused: readonly string[]]
>([
  ['the best of both', ['userns none', 'userns slirp4netns', 'bwrap none'], true, 'userns', 'slirp4netns', []],
  ['the next best', ['bwrap none', 'bwrap pasta'], true, 'bwrap', 'pasta', ['userns', 'slirp4netns']],
  ['a proxy where no better outbound network works', ['userns none'], true, 'userns', 'proxy', ['slirp4netns', 'pasta']],
  ['no outbound network on a computer without a default route', ['userns none', 'userns pasta'], false, 'userns', 'none', []],
  ['none where nothing works', [], true, 'none', 'host', ['userns', 'bwrap']],
])('finds %s and reports why better kinds failed', async ([, working, hasRoute, kind, outbound, refused]) => {
  const found = await findIsolation(kindsFor({ isRoot: false }), computerWith(working, hasRoute));
  expect([found.kind, found.outbound, found.refused.map(([name]) => name)]).toEqual([kind, outbound, refused]);
});

test('root isolation is tried first, and only by root', () => {
  expect(kindsFor({ isRoot: true })).toEqual(['root', 'userns', 'bwrap', 'none']);
  expect(kindsFor({ isRoot: false })).toEqual(['userns', 'bwrap', 'none']);
});
