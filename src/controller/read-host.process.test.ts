import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import type { ControllerHost } from '../domain/controller-host.ts';
import { readHost } from './read-host.ts';

const host: ControllerHost = {
  key: 'c0ffee00',
  publicHost: '203.0.113.7',
  addresses: ['203.0.113.7'],
  place: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 },
  whenIdle: 'power-off',
};

test('on the machine one sits at there is nothing to know', async () => {
  await withTempHome(async (home) => expect(readHost(join(home, 'host.json'))).toBeUndefined());
});

test('what was written is read', async () => {
  await withTempHome(async (home) => {
    writeFileSync(join(home, 'host.json'), JSON.stringify(host));
    expect(readHost(join(home, 'host.json'))).toEqual(host);
  });
});

test.each([
  ['no JSON', '{'],
  ['a host without addresses', JSON.stringify({ ...host, addresses: undefined })],
  ['an end that is none', JSON.stringify({ ...host, whenIdle: 'explode' })],
  ['a place without a price', JSON.stringify({ ...host, place: { ...host.place, hourlyUsd: null } })],
])('a file that does not say it is refused rather than guessed at: %s', async (_, text) => {
  await withTempHome(async (home) => {
    writeFileSync(join(home, 'host.json'), text);
    expect(() => readHost(join(home, 'host.json'))).toThrow(expect.objectContaining({ code: 'SVC_STATE_CORRUPT' }));
  });
});
