import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RouteReply } from '../api/contract.ts';
import { schemaVersion } from '../domain/backup.ts';
import { randomHex } from '../shared/hex.ts';
import type { DaemonContext } from './daemon-context.ts';

/** Copies the state database for a backup, and lists what the backup of SVC_HOME lacks. Throws SVC_BACKUP_REFUSED. */
export async function snapshotState({ paths, store }: DaemonContext): Promise<RouteReply<'snapshotState'>> {
  // If the client is killed, the daemon removes the folder with old uploads.
  const folder = join(paths.uploadsDir, `backup${randomHex(6)}-1`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await store.copyTo(join(folder, 'state.db'));
    const services = await store.services.list();
    const versions = (await Promise.all(services.map(({ name }) => store.services.versions(name)))).flat();
    const files = versions.flatMap(({ task: { service } }) =>
      service?.tls === undefined ? [] : [service.tls.keyfile, service.tls.certfile],
    );
    const outside = [...new Set(files)].filter((path) => !path.startsWith(`${paths.home}/`)).toSorted();
    return { folder, schema: schemaVersion, services: services.map(({ name }) => name), outside };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
