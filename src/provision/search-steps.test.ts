import { expect, test } from 'vitest';
import { anOffer } from '../../test/support/builders.ts';
import { describeStep } from './search-steps.ts';

test.each(['no PriorityClass with name serving was found', 'no PriorityClass with name serving was found.'])(
  'what a place refused with ends before the next sentence begins: %s',
  (reason) => {
    const refused = { kind: 'unsupported', scope: 'zone', reason } as const;
    expect(describeStep({ type: 'refused', offer: anOffer(), refused, until: 0 })).toContain('was found. Not asked again before 1970-');
  },
);
