import { expect, test } from 'vitest';
import { SvcError } from '../shared/errors.ts';
import { explainSqliteError, isBusy } from './sqlite-errors.ts';

/** An error as node:sqlite throws it. */
const sqliteError = (errcode: number): Error => Object.assign(new Error('what SQLite says'), { code: 'ERR_SQLITE_ERROR', errcode });

// Numbers from https://www.sqlite.org/rescode.html.
test.for<readonly [name: string, errcode: number, code: string]>([
  ['SQLITE_BUSY', 5, 'SVC_STATE_BUSY'],
  ['SQLITE_BUSY_SNAPSHOT', 517, 'SVC_STATE_BUSY'],
  ['SQLITE_LOCKED', 6, 'SVC_STATE_BUSY'],
  ['SQLITE_FULL', 13, 'SVC_NO_SPACE'],
  ['SQLITE_IOERR_SHMSIZE', 4874, 'SVC_NO_SPACE'],
  ['SQLITE_IOERR_READ', 266, 'SVC_STATE_CORRUPT'],
  ['SQLITE_CORRUPT', 11, 'SVC_STATE_CORRUPT'],
  ['SQLITE_NOTADB', 26, 'SVC_STATE_CORRUPT'],
  ['SQLITE_READONLY', 8, 'SVC_HOME_UNUSABLE'],
  ['SQLITE_CANTOPEN', 14, 'SVC_HOME_UNUSABLE'],
])('%s becomes its svc error with the path', ([, errcode, code]) => {
  const cause = sqliteError(errcode);
  const explained = explainSqliteError(cause, '/home/state.db');
  expect(explained).toBeInstanceOf(SvcError);
  expect(explained).toMatchObject({ code, cause, message: expect.stringContaining('/home/state.db') });
});

test('a bug in svc and a foreign error stay unchanged', () => {
  for (const error of [sqliteError(1), sqliteError(1555), new Error('other'), 'text']) {
    expect(explainSqliteError(error, '/home/state.db')).toBe(error);
    expect(isBusy(error)).toBe(false);
  }
});
