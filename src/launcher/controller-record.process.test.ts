import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aControllerRecord } from '../../test/support/builders.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { readControllerRecord, removeControllerRecord, writeControllerRecord } from './controller-record.ts';

const record = aControllerRecord({
  machine: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 },
  machineId: 'us-east-2/i-1',
});

test('a record has mode 0600 and can be read until it is removed', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'controller.json');
    expect(readControllerRecord(path)).toBeUndefined();
    writeControllerRecord(path, record);
    expect(readControllerRecord(path)).toEqual(record);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    removeControllerRecord(path);
    expect(readControllerRecord(path)).toBeUndefined();
  });
});

test('a record with a Kubernetes site is read, and an older one without it', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'controller.json');
    const inCluster = { ...record, cluster: { context: 'prod', namespace: 'serving' } };
    writeControllerRecord(path, inCluster);
    expect(readControllerRecord(path)).toEqual(inCluster);
    writeFileSync(path, JSON.stringify(record));
    expect(readControllerRecord(path)?.cluster).toBeUndefined();
  });
});

test('a record of an earlier version is read under the current names', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'controller.json');
    const { machine, requestedResources, isTerminating, ...rest } = record;
    writeFileSync(path, JSON.stringify({ ...rest, place: machine, wished: requestedResources, isLeaving: isTerminating }));
    expect(readControllerRecord(path)).toEqual(record);
  });
});

test.each([
  ['a Kubernetes site without a namespace', JSON.stringify({ ...record, cluster: { context: 'prod' } })],
  ['no JSON', 'x'],
  ['no key', JSON.stringify({ ...record, key: undefined })],
  ['a machine without a provider', JSON.stringify({ ...record, machine: {} })],
])('an unreadable record is an error, because a machine may exist: %s', async (_, text) => {
  await withTempHome(async (home) => {
    const path = join(home, 'controller.json');
    writeFileSync(path, text);
    expect(() => readControllerRecord(path)).toThrow(expect.objectContaining({ code: 'SVC_STATE_CORRUPT' }));
  });
});
