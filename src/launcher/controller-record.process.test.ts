import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aControllerRecord } from '../../test/support/builders.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { readControllerRecord, removeControllerRecord, writeControllerRecord } from './controller-record.ts';

const record = aControllerRecord({
  place: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 },
  machineId: 'us-east-2/i-1',
});

test('what was written is read, by its owner alone, until it is removed', async () => {
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

test('one in a cluster says in which; one of before that could be says nothing of it, and is read', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'controller.json');
    const inCluster = { ...record, cluster: { context: 'prod', namespace: 'serving' } };
    writeControllerRecord(path, inCluster);
    expect(readControllerRecord(path)).toEqual(inCluster);
    writeFileSync(path, JSON.stringify(record));
    expect(readControllerRecord(path)?.cluster).toBeUndefined();
  });
});

test.each([
  ['a cluster without a namespace', JSON.stringify({ ...record, cluster: { context: 'prod' } })],
  ['no JSON', 'x'],
  ['no key', JSON.stringify({ ...record, key: undefined })],
  ['a place without a provider', JSON.stringify({ ...record, place: {} })],
])('a record that cannot be read is an error, as a machine may hang on it: %s', async (_, text) => {
  await withTempHome(async (home) => {
    const path = join(home, 'controller.json');
    writeFileSync(path, text);
    expect(() => readControllerRecord(path)).toThrow(expect.objectContaining({ code: 'SVC_STATE_CORRUPT' }));
  });
});
