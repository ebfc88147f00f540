import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { envVar } from '../shared/env.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import { isObject } from '../shared/json.ts';

/** Sources of credentials for Kubernetes clusters. */
export interface KubeconfigSource {
  /** The first definition of a name counts. Missing files are skipped. */
  readonly files: readonly string[];
  /** API server and service account's folder of the pod that this process runs in; undefined outside Kubernetes. */
  readonly pod: { readonly host: string; readonly port: string; readonly folder: string } | undefined;
}

/** A part of a kubeconfig as written, with absolute paths. */
export type KubeconfigPart = Readonly<Record<string, unknown>>;

/** The merged content of all files. */
export interface Kubeconfig {
  readonly currentContext: string | undefined;
  readonly contexts: ReadonlyMap<string, KubeconfigPart>;
  readonly clusters: ReadonlyMap<string, KubeconfigPart>;
  readonly users: ReadonlyMap<string, KubeconfigPart>;
}

/** One context. Holds secrets: show only the fields marked "may be shown". */
export interface KubeCluster {
  readonly context: string;
  /** May be shown. */
  readonly namespace: string;
  /** May be shown: without user name and password. */
  readonly server: string;
  /** May be shown. True: the API server's certificate is not checked. */
  readonly insecure: boolean;
  /** May be shown: `credential plugin aws`, `client certificate`, `token` … */
  readonly login: string;
  readonly proxied: boolean;
  /** Whether this process runs in a pod of this Kubernetes cluster. */
  readonly isInside: boolean;
  readonly cluster: KubeconfigPart;
  readonly user: KubeconfigPart;
}

const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** kubectl's sources: the files of KUBECONFIG or `~/.kube/config`, and the surrounding pod's service account. */
export function defaultKubeconfigSource(): KubeconfigSource {
  const given = envVar('KUBECONFIG');
  const files =
    given === undefined ? [join(envVar('HOME') ?? homedir(), '.kube', 'config')] : given.split(delimiter).filter((file) => file !== '');
  const host = envVar('KUBERNETES_SERVICE_HOST');
  const pod = host === undefined ? undefined : { host, port: envVar('KUBERNETES_SERVICE_PORT') ?? '443', folder: serviceAccountFolder };
  return { files: files.map((file) => resolve(file)), pod: pod === undefined || !isFile(join(pod.folder, 'token')) ? undefined : pod };
}

/** Merges the files as kubectl does: the first definition of a name counts. */
export function readKubeconfig(files: readonly string[]): Kubeconfig {
  let currentContext: string | undefined;
  const contexts = new Map<string, KubeconfigPart>();
  const clusters = new Map<string, KubeconfigPart>();
  const users = new Map<string, KubeconfigPart>();
  for (const file of files) {
    const said = readFile(file);
    if (said === undefined) continue;
    const current = said['current-context'];
    if (typeof current === 'string' && current !== '') currentContext ??= current;
    const folder = dirname(file);
    addNamed(contexts, said['contexts'], 'context', (part) => part);
    addNamed(clusters, said['clusters'], 'cluster', (part) => withAbsolutePaths(part, folder, ['certificate-authority']));
    addNamed(users, said['users'], 'user', (part) => withAbsoluteUser(part, folder));
  }
  return { currentContext, contexts, clusters, users };
}

/** Differs when the files have changed. */
export function kubeconfigStamp(files: readonly string[]): string {
  return files.map(stampOf).join('|');
}

function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? '-' : `${stat.ino}:${stat.size}:${stat.mtimeMs}`;
}

/** Errors never quote the text: it holds tokens and keys. */
function readFile(file: string): Readonly<Record<string, unknown>> | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw unreadable(file, messageOf(error), error);
  }
  const document = parseDocument(text, { prettyErrors: true });
  const [fault] = document.errors;
  if (fault !== undefined) throw unreadable(file, `line ${fault.linePos?.[0].line ?? 1} is not YAML (${fault.code})`);
  const said: unknown = document.toJS();
  if (said === null || said === undefined) return {};
  if (!isObject(said)) throw unreadable(file, 'it is not a kubeconfig');
  return said;
}

function unreadable(file: string, why: string, cause?: unknown): SvcError {
  return new SvcError('SVC_CREDENTIALS', `The kubeconfig ${file} cannot be read: ${why}`, {
    hint: 'Correct the file, or name another one in KUBECONFIG; kubectl config view shows what kubectl makes of it.',
    cause,
  });
}

function addNamed(all: Map<string, KubeconfigPart>, list: unknown, field: string, change: (part: KubeconfigPart) => KubeconfigPart): void {
  if (!Array.isArray(list)) return;
  for (const entry of list) {
    if (!isObject(entry) || typeof entry['name'] !== 'string' || all.has(entry['name'])) continue;
    const part = entry[field];
    all.set(entry['name'], change(isObject(part) ? part : {}));
  }
}

function withAbsolutePaths(part: KubeconfigPart, folder: string, fields: readonly string[]): KubeconfigPart {
  const changed: Record<string, unknown> = { ...part };
  for (const field of fields) {
    const path = part[field];
    const data = part[`${field}-data`];
    // With both, kubectl uses the data but the library the file. Without the file they agree.
    if (data !== undefined && data !== '') delete changed[field];
    else if (typeof path === 'string' && path !== '' && !isAbsolute(path)) changed[field] = join(folder, path);
  }
  return changed;
}

function withAbsoluteUser(part: KubeconfigPart, folder: string): KubeconfigPart {
  const user = withAbsolutePaths(part, folder, ['client-certificate', 'client-key', 'tokenFile']);
  const plugin = user['exec'];
  if (!isObject(plugin) || typeof plugin['command'] !== 'string' || !plugin['command'].includes('/')) return user;
  return { ...user, exec: withAbsolutePaths(plugin, folder, ['command']) };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** Whether a URL's host is this machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname === '::1' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
