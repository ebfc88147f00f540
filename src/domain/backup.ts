import { isObject, parseJson } from '../shared/json.ts';

/** Version of the database schema, which backups name. A test compares it with the store's migrations. */
export const schemaVersion = 6;

/** Name of the description within a backup. */
export const manifestName = 'backup.json';

/** What a backup says about itself. */
export interface BackupManifest {
  readonly format: 1;
  /** Of the database schema. */
  readonly schema: number;
  /** Version of svc that wrote it. */
  readonly version: string;
  readonly createdAt: string;
  readonly services: readonly string[];
}

/** The manifest of this text; undefined when it is none. A newer format is a manifest, too, for its message. */
export function readManifest(text: string): (Omit<BackupManifest, 'format'> & { readonly format: number }) | undefined {
  const value = parseJson(text);
  if (!isObject(value)) return undefined;
  const { format, schema, version, createdAt, services } = value;
  if (typeof format !== 'number' || typeof schema !== 'number' || typeof version !== 'string' || typeof createdAt !== 'string')
    return undefined;
  return {
    format,
    schema,
    version,
    createdAt,
    services: Array.isArray(services) ? services.filter((name) => typeof name === 'string') : [],
  };
}

/** Whether this version of svc can use a backup. */
export function isReadable({ format, schema }: { readonly format: number; readonly schema: number }): boolean {
  return format === 1 && schema <= schemaVersion;
}

/** Folders and files at the top of SVC_HOME that belong to running processes, to this machine, or to the database. */
const leftOutAtTop = new Set([
  'boot.json',
  'cache',
  'controller-start-error.json',
  'controller.idle',
  'controller.lock',
  'homes',
  'local',
  'machines',
  'programs',
  'reserve',
  'run',
  'unfinished-restore.json',
  'uploads',
]);

/** The same in the folder of each service or cluster. */
const leftOutOfService = new Set(['reconciler.lock', 'reconciler.identity.json', 'replicas', 'replicas.json']);

/**
 * Whether a file or folder of SVC_HOME belongs into a backup, by its path below it. The database is copied apart. Logs,
 * processes, machines of this computer and tunnels are left out; a new kind of file is in it.
 */
export function isInBackup(path: string): boolean {
  const [top = '', key, name, more] = path.split('/');
  if (leftOutAtTop.has(top) || top.startsWith('state.db') || top.startsWith('before-restore-') || top.startsWith('restore-')) return false;
  if (key === undefined) return !isLog(top);
  if (top === 'ssh' && key === 'ways') return false;
  if (top === 'kubernetes' && (key === 'spool' || name === 'ways')) return false;
  if (top !== 'services' && top !== 'clusters') return true;
  // Only files of svc are directly in the folder; below it are those of the user.
  return name === undefined || more !== undefined || !(leftOutOfService.has(name) || isLog(name));
}

const isLog = (name: string): boolean => /\.log(?:\.\d+)?$/.test(name);
