import {
  closeSync,
  type Dirent,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
  readdirSync,
} from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { ApiClient } from '../../api/client.ts';
import { type BackupManifest, isInBackup, isReadable, manifestName, readManifest } from '../../domain/backup.ts';
import type { ExecResult } from '../../remote/remote.ts';
import { runCommand } from '../../remote/run-command.ts';
import { isoTime } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { hasErrno, messageOf, SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { readIfThere, writeFileAtomic } from '../../shared/system/files.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { tryProcessLock } from '../../shared/system/process-lock.ts';
import { removeStubborn } from '../../shared/system/remove-stubborn.ts';
import { svcVersion } from '../../shared/version.ts';
import type { CommandContext } from '../command.ts';
import { putInPlace } from '../restore/put-in-place.ts';

interface FileArgs {
  readonly file: string;
  readonly json: boolean;
}

/** Attempts to read files that the controller changes meanwhile. */
const mostTries = 3;

/** `svc controller backup`: writes the state and the files of services into one archive. Services go on. */
export async function controllerBackup(args: FileArgs, context: CommandContext): Promise<void> {
  const { ui, cwd, paths } = context;
  await refuseRemote('backed up', context);
  const file = resolve(cwd, args.file);
  refuseExisting(file);
  refuseWithin(paths.home, file);
  const api = await apiOf(context);
  const temporary = `${file}.${randomHex(6)}.tmp`;
  try {
    createPrivate(temporary);
    const { services, outside } = await archive(api, temporary, context);
    putFinished(temporary, file);
    if (args.json) return ui.json({ file, services, outside });
    ui.say(`Backed up ${count(services)} to ${file}. It contains secrets, which its readers can use.`);
    if (outside.length > 0) ui.say(`Files outside of ${context.paths.home} are not in it: ${outside.join(', ')}`);
    return ui.say(`To restore it: svc controller restore ${args.file}`);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (hasErrno(error, 'ENOENT'))
      throw new SvcError('SVC_FILE_NOT_FOUND', `The folder ${dirname(path)} does not exist.`, { cause: error });
    throw new SvcError('SVC_BACKUP_REFUSED', `${dirname(path)} cannot be written: ${messageOf(error)}`, {
      hint: 'Name a file in another folder.',
    });
  }
}

function refuseExisting(file: string): void {
  if (!existsSync(file)) return;
  throw new SvcError('SVC_BACKUP_REFUSED', `${file} exists already.`, { hint: 'Name another file, or remove that one first.' });
}

async function apiOf({ connection, paths }: CommandContext): Promise<ApiClient> {
  const existing = await connection.existing();
  if (existing !== undefined) return existing;
  if (existsSync(paths.database)) return connection.client();
  throw new SvcError('SVC_BACKUP_REFUSED', `${paths.home} has no state: no service was ever deployed.`, {
    hint: 'Check SVC_HOME, or deploy a service: svc serve up FILE',
  });
}

const real = (path: string): string => (existsSync(path) ? realpathSync(path) : path);

/** An archive within the home would contain itself, and each earlier one. */
function refuseWithin(home: string, file: string): void {
  if (!`${real(dirname(file))}/`.startsWith(`${real(home)}/`)) return;
  throw new SvcError('SVC_BACKUP_REFUSED', `${file} is within ${home}, which is backed up.`, { hint: 'Name a file outside of it.' });
}

/** Never replaces a file that was made meanwhile. */
function putFinished(temporary: string, file: string): void {
  try {
    linkSync(temporary, file);
  } catch (error) {
    refuseExisting(file);
    // A file system without hard links.
    if (!hasErrno(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK')) throw error;
    renameSync(temporary, file);
  }
}

interface Archived {
  readonly services: readonly string[];
  readonly outside: readonly string[];
}

/** The copy of the database comes first: then the files that it refers to are there, unless they are removed meanwhile. */
async function archive(api: ApiClient, target: string, context: CommandContext): Promise<Archived> {
  const { paths, clock, signal } = context;
  for (let tries = 1; ; tries += 1) {
    const { folder, schema, services, outside } = await api.call('snapshotState', { timeoutMs: snapshotMs });
    try {
      const manifest: BackupManifest = { format: 1, schema, version: svcVersion, createdAt: isoTime(clock.now()), services };
      writeFileSync(join(folder, manifestName), JSON.stringify(manifest, undefined, 2), { mode: 0o600 });
      const list = await filesOf(paths.home);
      const links = list.filter((path) => !path.includes('/') && lstatSync(join(paths.home, path)).isSymbolicLink());
      const own = ['-C', folder, manifestName, 'state.db', 'state.db.seal'];
      const others = ['-C', paths.home, '--no-recursion', '--null', '--verbatim-files-from', '-T', '-'];
      const { exitCode, stderr } = await tar(['-czf', target, ...own, ...others], context, `${list.join('\0')}\0`);
      signal.throwIfAborted();
      if (exitCode === 0) {
        syncFile(target);
        return { services, outside: [...outside, ...links.map((path) => join(paths.home, path))] };
      }
      if (tries >= mostTries)
        throw new SvcError('SVC_BACKUP_REFUSED', `The archive could not be written: ${stderr.trim()}`, { hint: 'Try again.' });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/** Timeout of the copy, ms: a database of a gigabyte takes some ten seconds. */
const snapshotMs = 300_000;

/** Paths below the home, folders before their contents. */
async function filesOf(home: string, below = ''): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await entriesOf(join(home, below))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (!isInBackup(path) || !(entry.isFile() || entry.isDirectory() || entry.isSymbolicLink())) continue;
    found.push(path);
    if (entry.isDirectory()) found.push(...(await filesOf(home, path)));
  }
  return found;
}

/** A folder that a service takes with it meanwhile is empty. */
async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

function tar(args: readonly string[], { clock, signal }: CommandContext, input?: string): Promise<ExecResult> {
  const env = { ...wholeEnv(), LC_ALL: 'C', TAR_OPTIONS: undefined };
  return runCommand(['tar', ...args], { env, clock, signal, ...(input !== undefined && { input }) });
}

function syncFile(path: string): void {
  const file = openSync(path, 'r+');
  fsyncSync(file);
  closeSync(file);
}

/** `svc controller restore`: puts a backup into SVC_HOME, and keeps what it replaces. */
export async function controllerRestore(args: FileArgs, context: CommandContext): Promise<void> {
  const { ui, cwd, paths, clock, connection } = context;
  await refuseRemote('restored', context);
  const file = resolve(cwd, args.file);
  if (!existsSync(file)) throw new SvcError('SVC_FILE_NOT_FOUND', `There is no file ${file}.`);
  prepareHome(paths);
  // A controller that starts meanwhile ends at this lock, as it does beside another one.
  const lock = (await connection.running()) === undefined ? tryProcessLock(`${paths.home}/controller.lock`) : undefined;
  if (lock === undefined) {
    throw new SvcError('SVC_CONTROLLER_RUNNING', 'The controller runs, and would go on with its present state.', {
      hint: `Stop it first; its services go on: svc controller stop --keep-services. Then: svc controller restore ${args.file}`,
    });
  }
  const staging = join(paths.home, `restore-${randomHex(6)}`);
  const aside = join(paths.home, `before-restore-${isoTime(clock.now()).replaceAll(/[:.]/g, '')}`);
  try {
    // Of restores that were killed: this one has the lock.
    for (const name of readdirSync(paths.home)) if (isStaging(name)) await removeStubborn(join(paths.home, name));
    const manifest = await unpack(file, staging, context);
    await rm(join(staging, manifestName));
    // A controller must not start on a part of the backup.
    writeFileAtomic(paths.restoreMark, JSON.stringify({ file }));
    const kept = putInPlaceOrSay(staging, aside, args.file, context);
    // Without it, the next command knows that there is work for a controller.
    rmSync(paths.idleMark, { force: true });
    rmSync(paths.restoreMark, { force: true });
    const { createdAt, services } = manifest;
    if (args.json) return ui.json({ file, createdAt, services, aside: kept ? aside : null });
    ui.say(`Restored ${count(services)} from ${file}, made ${createdAt}.`);
    if (kept) ui.say(`The files that it replaced are in ${aside}. Remove them when all is well.`);
    return ui.say('To start the controller with its services: svc serve status');
  } finally {
    await removeStubborn(staging);
    lock.release();
  }
}

/** Whether this is the name of a folder into which a restore unpacks. */
const isStaging = (name: string): boolean => /^restore-[\da-f]+$/.test(name);

function putInPlaceOrSay(staging: string, aside: string, file: string, { paths }: CommandContext): boolean {
  try {
    return putInPlace(staging, paths.home, aside);
  } catch (error) {
    throw new SvcError('SVC_BACKUP_REFUSED', `${paths.home} has only a part of the backup: ${messageOf(error)}`, {
      cause: error,
      hint: `Remove the cause and run it again: svc controller restore ${file}. What it replaced is in ${aside}.`,
    });
  }
}

/** Unpacks the whole archive, which also compares its checksum, before anything in the home changes. */
async function unpack(file: string, staging: string, context: CommandContext): Promise<BackupManifest> {
  await mkdir(staging, { mode: 0o700 });
  const { exitCode, stderr } = await tar(['-xzpf', file, '--no-same-owner', '-C', staging], context);
  context.signal.throwIfAborted();
  if (exitCode !== 0) throw new SvcError('SVC_BAD_BACKUP', `${file} is no backup, or is damaged: ${stderr.trim().split('\n')[0] ?? ''}`);
  const manifest = readManifest(readIfThere(join(staging, manifestName)));
  if (manifest === undefined || !(await isBackup(staging))) throw new SvcError('SVC_BAD_BACKUP', `${file} is no backup of svc.`);
  if (!isReadable(manifest)) {
    const { version, schema } = manifest;
    throw new SvcError(
      'SVC_VERSION_MISMATCH',
      `${file} is from svc ${version} (schema ${schema}), which is newer than this one (${svcVersion}).`,
      {
        hint: 'Restore it with that version of svc, or a newer one.',
      },
    );
  }
  return { ...manifest, format: 1 };
}

/** Whether a folder has the database with its seal, and nothing that a backup never has. */
async function isBackup(folder: string): Promise<boolean> {
  const own = [manifestName, 'state.db', 'state.db.seal'];
  const isFile = (name: string): boolean => lstatSync(join(folder, name), { throwIfNoEntry: false })?.isFile() === true;
  if (!own.every(isFile)) return false;
  const expected = new Set([...own, ...(await filesOf(folder))]);
  return (await readdir(folder, { recursive: true })).every((path) => expected.has(path));
}

const count = (services: readonly string[]): string =>
  services.length === 0 ? 'no service' : `${services.length === 1 ? 'the service' : `${services.length} services`} ${services.join(', ')}`;

/** A remote controller's state is on its machine; one in Kubernetes has a volume or a database. */
async function refuseRemote(what: string, { connection, paths }: CommandContext): Promise<void> {
  const remoteController = await connection.remoteController();
  if (remoteController === undefined) return;
  const status = await remoteController.inCluster?.status();
  const hint =
    status === undefined
      ? 'Keep the service files, from which svc serve up makes the services again; svc serve status lists them.'
      : status.database === 'sqlite'
        ? `Snapshot its volume: kubectl --context ${status.context} -n ${status.namespace} get persistentvolumeclaims`
        : 'Back up its database: pg_dump. docs/high-availability.md says how to restore it.';
  throw new SvcError('SVC_BACKUP_REFUSED', `Only a controller on this machine can be ${what}, not that of ${paths.controllerRecord}.`, {
    hint,
  });
}
