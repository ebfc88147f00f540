import { cp, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ServiceSpec, Task, TlsSpec } from '../../domain/task.ts';
import { withUploads } from '../../domain/upload-layout.ts';
import type { HomePaths } from '../../shared/paths.ts';

/** How long the newest upload of a source is kept, ms: the next upload then sends only the changes. */
const keptMs = 7 * 86_400_000;

/** How long a superseded upload may still be in use, ms. */
const replacedMs = 3_600_000;

/** The task with its files taken from an upload, if there is one. */
export function withUploaded(task: Task, upload: string | undefined, paths: HomePaths): Task {
  return upload === undefined ? task : withUploads(task, join(paths.uploadsDir, upload));
}

/** The settings with the names that a controller gives to the files. */
const inFolder = (tls: TlsSpec, dir: string): TlsSpec => ({
  ...tls,
  keyfile: join(dir, 'key.pem'),
  certfile: join(dir, 'certificate.pem'),
  ...(tls.clientCa !== undefined && { clientCa: join(dir, 'client-ca.pem') }),
});

/** Name of the folder of a version's TLS files, in the service's folder. */
export function tlsFolder(version: number): string {
  return version === 1 ? 'tls' : `tls-${version}`;
}

/** With `isNeeded`, copies the endpoint's TLS files to the service's folder: their origin may vanish earlier. */
export async function keepTlsFiles(task: Task, isNeeded: boolean, dir: string, version: number): Promise<Task> {
  const tls = task.service?.tls;
  if (!isNeeded || tls === undefined || task.service === undefined) return task;
  const folder = join(dir, tlsFolder(version));
  const kept = inFolder(tls, folder);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await cp(tls.keyfile, kept.keyfile);
  await cp(tls.certfile, kept.certfile);
  if (tls.clientCa !== undefined && kept.clientCa !== undefined) await cp(tls.clientCa, kept.clientCa);
  return { ...task, service: { ...task.service, tls: kept } };
}

/** The folder of TLS files that a controller kept in its service folder; undefined for files of the user. */
export function keptTlsFolder({ tls }: ServiceSpec, dir: string): string | undefined {
  if (tls === undefined || basename(dirname(dirname(tls.keyfile))) !== basename(dir)) return undefined;
  return basename(dirname(tls.keyfile));
}

/** Points TLS files that another controller kept in its service folder to the local folder, which has them too. */
export function withOwnTlsFiles(spec: ServiceSpec, dir: string): ServiceSpec {
  const folder = keptTlsFolder(spec, dir);
  return folder === undefined || spec.tls === undefined ? spec : { ...spec, tls: inFolder(spec.tls, join(dir, folder)) };
}

/**
 * Removes uploads that no client needs, named `<source>-<random>`. The newest of each source stays for a while: the
 * client can build the next one on it.
 */
export async function removeOldUploads(paths: HomePaths, now: number): Promise<void> {
  const names = await readdir(paths.uploadsDir).catch(() => []);
  const aged = await Promise.all(names.map(async (name) => ({ name, at: (await stat(join(paths.uploadsDir, name))).mtimeMs })));
  for (const group of Map.groupBy(aged, ({ name }) => name.split('-', 1)[0]).values()) {
    const [newest, ...older] = group.toSorted((a, b) => b.at - a.at);
    const expired = [
      ...older.filter(({ at }) => now - at > replacedMs),
      ...(newest !== undefined && now - newest.at > keptMs ? [newest] : []),
    ];
    for (const { name } of expired) await rm(join(paths.uploadsDir, name), { recursive: true, force: true });
  }
}
