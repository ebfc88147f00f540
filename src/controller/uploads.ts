import { cp, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ServiceSpec, Task } from '../domain/task.ts';
import { withUploads } from '../domain/upload-layout.ts';
import type { HomePaths } from '../shared/paths.ts';

/** How long what was brought stays when nothing newer of the same source came, ms: the next upload then sends only what changed. */
const keptMs = 7 * 86_400_000;

/** How long an upload that was followed by another one may still be in use, ms. */
const replacedMs = 3_600_000;

/** The task with its files where a client brought them; the task as it is when nothing was brought. */
export function withUploaded(task: Task, upload: string | undefined, paths: HomePaths): Task {
  return upload === undefined ? task : withUploads(task, join(paths.uploadsDir, upload));
}

type TlsFiles = NonNullable<ServiceSpec['tls']>;

/** The keys of an endpoint in the folder of its service. */
const tlsFilesIn = (dir: string): TlsFiles => ({ keyfile: join(dir, 'tls', 'key.pem'), certfile: join(dir, 'tls', 'certificate.pem') });

/** Copies the keys of an endpoint, where they would not stay by themselves, to the folder of the service, which does as long as it. */
export async function keepTlsFiles(task: Task, isNeeded: boolean, dir: string): Promise<Task> {
  const tls = task.service?.tls;
  if (!isNeeded || tls === undefined || task.service === undefined) return task;
  const kept = tlsFilesIn(dir);
  await mkdir(join(dir, 'tls'), { recursive: true, mode: 0o700 });
  await cp(tls.keyfile, kept.keyfile);
  await cp(tls.certfile, kept.certfile);
  return { ...task, service: { ...task.service, tls: kept } };
}

/** A service as this controller has it: keys that another controller kept in its own folder of the service are in the one here as well. */
export function withOwnTlsFiles(spec: ServiceSpec, dir: string): ServiceSpec {
  const isKept = spec.tls?.keyfile.endsWith(join('/', basename(dir), 'tls', 'key.pem')) === true;
  return isKept ? { ...spec, tls: tlsFilesIn(dir) } : spec;
}

/**
 * Removes what clients brought and nobody needs any more. Names are `<source>-<chance>`: of the uploads of one source the newest stays for a
 * while, so that the client can build the next one on it.
 */
export async function removeOldUploads(paths: HomePaths, now: number): Promise<void> {
  const names = await readdir(paths.uploadsDir).catch(() => []);
  const aged = await Promise.all(names.map(async (name) => ({ name, at: (await stat(join(paths.uploadsDir, name))).mtimeMs })));
  for (const group of Map.groupBy(aged, ({ name }) => name.split('-', 1)[0]).values()) {
    const [newest, ...older] = group.toSorted((a, b) => b.at - a.at);
    const leaving = [
      ...older.filter(({ at }) => now - at > replacedMs),
      ...(newest !== undefined && now - newest.at > keptMs ? [newest] : []),
    ];
    for (const { name } of leaving) await rm(join(paths.uploadsDir, name), { recursive: true, force: true });
  }
}
