import { errorCodes, exitCodes, httpStatuses, type ErrorCodeRow, type ErrorKind } from '../../src/shared/error-codes.ts';
import { page, table } from './markdown.ts';

const kindMeanings = {
  'invalid-input': 'What was given has to be changed.',
  'not-found': 'What was named does not exist.',
  conflict: 'It does not fit what there is now.',
  unauthenticated: 'Who asks is not known or not allowed.',
  capacity: 'There is not enough of something; elsewhere or later it may work.',
  transient: 'It may work when tried again.',
  internal: 'Something broke that other input of the user cannot correct.',
} as const satisfies Readonly<Record<ErrorKind, string>>;

const statusOf = (kind: string): string => String(Object.entries(httpStatuses).find(([name]) => name === kind)?.[1] ?? '');
const meaningOf = (kind: string): string => Object.entries(kindMeanings).find(([name]) => name === kind)?.[1] ?? '';

/** docs/reference/errors.md */
export function renderErrorsPage(): string {
  const rows: readonly (readonly [string, ErrorCodeRow])[] = Object.entries(errorCodes);
  return page(
    '# Errors',
    'Every error has a code that is stable: it is never renamed and never used for another meaning. From `src/shared/error-codes.ts`. With `--json` an error is printed as `{"error": {"code", "message", "hint", "problems"}}`.',
    '## Kinds',
    'The kind decides the exit status of a command and the HTTP status of the control API. 0 is success.',
    table(
      ['Kind', 'Exit status', 'HTTP status', 'Meaning'],
      Object.entries(exitCodes).map(([kind, status]) => [kind, String(status), statusOf(kind), meaningOf(kind)]),
    ),
    '## Codes',
    table(
      ['Code', 'Kind', 'Meaning', 'What to do'],
      rows.map(([code, { kind, meaning, remedy }]) => [`\`${code}\``, kind, meaning, remedy]),
    ),
  );
}
