import { expect, test } from 'vitest';
import type { LocalIsolation } from '../domain/config.ts';
import { withLocalProvider } from '../../test/support/local-provider.ts';
import { needs } from '../../test/support/needs.ts';
import { jobCases } from './job-conformance.ts';

/**
 * All cases run on the default isolation and on `none`, which differs most. The others run only the cases about
 * processes.
 */
const kinds: readonly (readonly [isolation: LocalIsolation, all: boolean])[] = [
  ['auto', true],
  ['none', true],
  ['userns', false],
  ['bwrap', false],
];

for (const [isolation, all] of kinds) {
  needs(isolation === 'bwrap' ? 'bwrap' : [], () => {
    test.concurrent.for(jobCases.filter(({ isAboutProcesses }) => all || isAboutProcesses === true))(
      `${isolation}: $name`,
      async ({ run }) => {
        await withLocalProvider({ isolation }, async (fixture) => {
          const [{ remote }, { remote: other }] = [await fixture.machine('a'), await fixture.machine('b')];
          await expect(run({ remote, other, node: process.execPath })).resolves.toBeUndefined();
        });
      },
    );
  });
}
