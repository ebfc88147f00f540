import { expect, test } from 'vitest';
import { findIsolation, kindsFor, type TriedComputer } from './find-isolation.ts';

/** A computer on which exactly these pairs of a kind and a way out work. */
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
  ['a proxy where no other way out works', ['userns none'], true, 'userns', 'proxy', ['slirp4netns', 'pasta']],
  ['no way out of a computer that has none', ['userns none', 'userns pasta'], false, 'userns', 'none', []],
  ['none where nothing works', [], true, 'none', 'host', ['userns', 'bwrap']],
])('found is %s, with why nothing better is', async ([, working, hasRoute, kind, outbound, refused]) => {
  const found = await findIsolation(kindsFor({ isRoot: false }), computerWith(working, hasRoute));
  expect([found.kind, found.outbound, found.refused.map(([name]) => name)]).toEqual([kind, outbound, refused]);
});

test('root is tried first, and by root alone', () => {
  expect(kindsFor({ isRoot: true })).toEqual(['root', 'userns', 'bwrap', 'none']);
  expect(kindsFor({ isRoot: false })).toEqual(['userns', 'bwrap', 'none']);
});
