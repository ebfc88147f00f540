import { copyFileSync, readFileSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { isObject } from '../../src/shared/json.ts';
import { idsLeftAfterRestore } from '../../src/store/open-store.ts';
import { daemonOf, reconcilersOf } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

const hello = 'examples/hello/service.yaml';
const pids = (list: readonly { readonly pid: number }[]): readonly number[] => list.map(({ pid }) => pid);
const stateOf = (svc: Svc): string => join(svc.home, 'state.db');

/** Copies the database as it is now. */
function backUp(svc: Svc): string {
  const backup = join(svc.home, 'backup.db');
  const database = new DatabaseSync(stateOf(svc));
  database.exec(`vacuum into '${backup}'`);
  database.close();
  return backup;
}

/** Returns the change counter of the state in one file; undefined during a write. */
function changesIn(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database.prepare('select changes from database_identity').get()?.['changes'];
  } catch {
    return undefined;
  } finally {
    database.close();
  }
}

/**
 * Whether the main file has the whole state, and the seal file matches. Before that a copy equals no committed state,
 * and a running checkpoint would write its pages into a file copied over it.
 */
function isSettled(path: string): boolean {
  const seal: unknown = JSON.parse(readFileSync(`${path}.seal`, 'utf8'));
  const sealed = isObject(seal) ? seal['changes'] : undefined;
  return changesIn(path) === sealed && changesIn(`file:${path}?immutable=1`) === sealed;
}

/** Waits until the controller has restarted on the current file. */
async function renewed(svc: Svc, before: readonly number[]): Promise<void> {
  await waitFor('another controller', () => daemonOf(svc.home).some(({ pid }) => !before.includes(pid)));
}

/** Returns the status of a reply, with its text when the program did not send it. */
async function answers(endpoint: string): Promise<number | string> {
  const reply = await fetch(endpoint);
  return reply.ok ? reply.status : `${reply.status} ${await reply.text()}`;
}

const losses: readonly (readonly [string, (path: string) => void])[] = [
  ['deleted', (path) => rmSync(path)],
  ['moved away', (path) => renameSync(path, `${path}.away`)],
  ['emptied in place', (path) => truncateSync(path)],
];

test.for(losses)('state.db is %s: replicas serve on, svc names the service, one command removes it', ([, lose]) =>
  withSvc(async (svc) => {
    await svc.ok(['serve', 'up', hello, '-n', 'hello']);
    const { endpoint } = await svc.ready('hello', 2);
    const daemon = pids(daemonOf(svc.home));
    lose(stateOf(svc));
    await renewed(svc, daemon);
    const status = await svc.ok(['serve', 'status']);
    expect(status).toContain("Service 'hello'");
    expect(status).toContain('svc controller sweep');
    expect(await answers(endpoint)).toBe(200);
    // The former controller may have started a balancer last. It ends by itself, because the database lacks its
    // service.
    await waitFor('reconcilers of the former database to end', () => reconcilersOf(svc.home).length === 0);
    await svc.ok(['serve', 'down', '--all', '--yes']);
    await svc.ok(['controller', 'restart']);
    // A new service of the same name must share nothing with the orphaned one.
    await svc.ok(['serve', 'up', hello, '-n', 'hello']);
    const again = await svc.ready('hello', 2);
    expect(again.endpoint).not.toBe(endpoint);
    await svc.ok(['controller', 'sweep', '--yes']);
    expect(await svc.ok(['serve', 'status'])).not.toContain('Left over');
    await expect(fetch(endpoint)).rejects.toThrow('fetch failed');
    expect(await answers(again.endpoint)).toBe(200);
    await svc.end();
  }),
);

const restores: readonly (readonly [string, (backup: string, path: string) => void, isStopped?: true])[] = [
  ['overwritten in place by an older copy', copyFileSync],
  ['replaced by an older copy', renameSync],
  ['overwritten by an older copy while the controller is stopped', copyFileSync, true],
  ['replaced by an older copy while the controller is stopped', renameSync, true],
];

test.for(restores)('state.db is %s: all processes continue with it, and commands take effect', ([, restore, isStopped]) =>
  withSvc(async (svc) => {
    await svc.ok(['serve', 'up', hello, '-n', 'hello']);
    await svc.ready('hello', 2);
    const backup = backUp(svc);
    await svc.ok(['serve', 'up', hello, '-n', 'later']);
    await svc.ready('later', 2);
    const isReady = async (replicaId: number): Promise<boolean> =>
      (await svc.service('hello')).replicas.some(({ id, status }) => id === replicaId && status === 'READY');
    await svc.ok(['serve', 'terminate-replica', 'hello', '1', '--yes']);
    await waitFor('a replica that the copy does not know', () => isReady(3));
    // The daemon records the end of the process. That write must not come between the check of the main file and the
    // restore.
    await waitFor('the terminated replica to be gone', async () =>
      (await svc.service('hello')).replicas.some(({ id, endedAt }) => id === 1 && endedAt !== null),
    );
    await waitFor('the main file', () => isSettled(stateOf(svc)));
    const daemon = pids(daemonOf(svc.home));
    if (isStopped) await svc.ok(['controller', 'stop', '--keep-services']);
    restore(backup, stateOf(svc));
    if (isStopped) await svc.ok(['serve', 'status']);
    await renewed(svc, daemon);
    await waitFor('the newer replica to be adopted', () => isReady(3));
    expect((await svc.events('hello')).find(({ cause }) => cause === 'adopted')?.replicaId).toBe(3);
    expect(await svc.ok(['serve', 'status'])).toContain("Service 'later'");
    await svc.ok(['serve', 'terminate-replica', 'hello', '3', '--yes']);
    // The copy's next id is 3. New replicas must skip ids that were assigned after the copy.
    await waitFor('the replacement', () => isReady(3 + idsLeftAfterRestore));
    await svc.ok(['controller', 'restart']);
    await svc.ok(['serve', 'down', '--all', '--yes']);
    await svc.ok(['controller', 'sweep', '--yes']);
    await svc.end();
  }),
);
