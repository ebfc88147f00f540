import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { collectEnvs, type EnvFlags } from './collect-envs.ts';

const none: EnvFlags = { envFlags: [], secretFlags: [] };
const local = (name: string): string | undefined => ({ LOCAL: 'here', EMPTY: '' })[name];

test('flags set values or copy them from the local environment; the last one wins', () => {
  expect(collectEnvs({ envFlags: ['A=1', 'A=2=3', 'LOCAL', 'EMPTY', 'B='], secretFlags: ['S=x'] }, local)).toEqual({
    envs: { A: '2=3', LOCAL: 'here', EMPTY: '', B: '' },
    secrets: { S: 'x' },
  });
});

test('a name without a value must be set locally', () => {
  expect(() => collectEnvs({ ...none, envFlags: ['TOKEN'] }, local)).toThrow(
    expect.objectContaining({
      code: 'SVC_MISSING_ENV',
      message: '--env: TOKEN is not set in local environment.',
      hint: 'Set it, or give the value: --env TOKEN=VALUE',
    }),
  );
  expect(() => collectEnvs({ ...none, secretFlags: ['TOKEN'] }, local)).toThrow('--secret: TOKEN is not set in local environment.');
});

test.each(['1A=x', 'a b=hunter2', '=hunter2', '__proto__=hunter2', ''])('%j is not a variable name, and its value is not shown', (flag) => {
  let message = '';
  try {
    collectEnvs({ ...none, secretFlags: [flag] }, local);
  } catch (error: unknown) {
    message = String(error);
  }
  expect(message).toContain('not the name of a variable');
  expect(message).not.toContain('hunter2');
});

test('files set values, and flags override them', async () => {
  await withTempHome((home) => {
    const envFile = join(home, 'env');
    const secretFile = join(home, 'secrets');
    writeFileSync(envFile, 'A=file\nB=file\nLOCAL\n');
    writeFileSync(secretFile, 'KEY="k 1"\n');
    expect(collectEnvs({ envFlags: ['A=flag'], envFile, secretFlags: [], secretFile }, local)).toEqual({
      envs: { A: 'flag', B: 'file', LOCAL: 'here' },
      secrets: { KEY: 'k 1' },
    });
  });
});

test('a missing or invalid env file is reported without its lines', async () => {
  await withTempHome((home) => {
    const path = join(home, 'env');
    expect(() => collectEnvs({ ...none, envFile: path }, local)).toThrow(
      expect.objectContaining({ code: 'SVC_FILE_NOT_FOUND', message: `The file ${path} does not exist.` }),
    );
    writeFileSync(path, 'A=1\nhunter2 hunter2\nB="hunter2\n');
    let error: unknown;
    try {
      collectEnvs({ ...none, envFile: path }, local);
    } catch (caught: unknown) {
      error = caught;
    }
    expect(error).toMatchObject({
      code: 'SVC_USAGE',
      message: `--env-file ${path} has 2 problems.`,
      problems: [
        { file: path, line: 2, column: 1, message: 'expected NAME=VALUE' },
        { file: path, line: 3, column: 1, message: 'the closing quote is missing, or something follows it' },
      ],
    });
    expect(JSON.stringify(error)).not.toContain('hunter2');
    writeFileSync(path, 'A\nTOKEN\n');
    expect(() => collectEnvs({ ...none, envFile: path }, local)).toThrow(`${path}:1: A is not set in local environment.`);
  });
});
