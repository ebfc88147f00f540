import { expect, test } from 'vitest';
import { anOffer } from '../../test/support/builders.ts';
import { describeStep } from './search-steps.ts';

test.each(['no PriorityClass with name serving was found', 'no PriorityClass with name serving was found.'])(
  "the refusal's reason ends with one full stop before the next sentence: %s",
  (reason) => {
    const refused = { kind: 'unsupported', scope: 'zone', reason } as const;
    expect(describeStep({ type: 'refused', offer: anOffer(), refused, until: 0 })).toContain('was found. Not asked again before 1970-');
  },
);
