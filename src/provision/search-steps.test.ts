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

test('an error of the provider is not called a refusal or a lack of machines', () => {
  const refused = { kind: 'provider-error', scope: 'whole-region', reason: 'AWS did not answer' } as const;
  const offer = anOffer();
  expect(describeStep({ type: 'refused', offer, refused, until: 0 })).toMatch(/ failed \(provider-error\): AWS did not answer\. Not asked/);
  const waiting = describeStep({ type: 'waiting', until: 0, reasons: ['AWS did not answer.'] });
  expect(waiting).toMatch(/^No location can be asked for a machine now; the next attempt is at .*Z\. AWS did not answer\.$/);
});
