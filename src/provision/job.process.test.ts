import { expect, test } from 'vitest';
import type { LocalIsolation } from '../domain/config.ts';
import { withLocalPlace } from '../../test/support/local-place.ts';
import { jobCases } from './job-conformance.ts';

/** Everything on what is used by default and on what is least alike; on the others what depends on them. */
const kinds: readonly (readonly [isolation: LocalIsolation, all: boolean])[] = [
  ['auto', true],
  ['none', true],
  ['userns', false],
  ['bwrap', false],
];

for (const [isolation, all] of kinds) {
  test.concurrent.for(jobCases.filter(({ isAboutProcesses }) => all || isAboutProcesses === true))(
    `${isolation}: $name`,
    async ({ run }) => {
      await withLocalPlace({ isolation }, async (place) => {
        const [{ remote }, { remote: other }] = [await place.machine('a'), await place.machine('b')];
        await expect(run({ remote, other, node: process.execPath })).resolves.toBeUndefined();
      });
    },
  );
}
