import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import type { RemoteControllerInfo } from '../domain/remote-controller-info.ts';
import { readControllerHost } from './read-controller-host.ts';

const controllerHost: RemoteControllerInfo = {
  key: 'c0ffee00',
  publicHost: '203.0.113.7',
  addresses: ['203.0.113.7'],
  machine: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 },
  whenIdle: 'power-off',
};

test('without a record the controller is local', async () => {
  await withTempHome(async (home) => expect(readControllerHost(join(home, 'host.json'))).toBeUndefined());
});

test('a written record is read back', async () => {
  await withTempHome(async (home) => {
    writeFileSync(join(home, 'host.json'), JSON.stringify(controllerHost));
    expect(readControllerHost(join(home, 'host.json'))).toEqual(controllerHost);
  });
});

test('a file of an earlier version is read with the current names', async () => {
  await withTempHome(async (home) => {
    const { machine, ...rest } = controllerHost;
    writeFileSync(join(home, 'host.json'), JSON.stringify({ ...rest, place: machine }));
    expect(readControllerHost(join(home, 'host.json'))).toEqual(controllerHost);
  });
});

test.each([
  ['no JSON', '{'],
  ['a host without addresses', JSON.stringify({ ...controllerHost, addresses: undefined })],
  ['an unknown idle action', JSON.stringify({ ...controllerHost, whenIdle: 'explode' })],
  ['a machine without a price', JSON.stringify({ ...controllerHost, machine: { ...controllerHost.machine, hourlyUsd: null } })],
])('an incomplete record is refused: %s', async (_, text) => {
  await withTempHome(async (home) => {
    writeFileSync(join(home, 'host.json'), text);
    expect(() => readControllerHost(join(home, 'host.json'))).toThrow(expect.objectContaining({ code: 'SVC_STATE_CORRUPT' }));
  });
});
