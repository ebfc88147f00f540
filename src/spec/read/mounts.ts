import { posix } from 'node:path';
import type { FileMount, Task, Workdir } from '../../domain/task.ts';
import { didYouMean } from '../../shared/did-you-mean.ts';
import { quote } from '../../shared/text.ts';
import { expandPath, type PathBase } from '../paths.ts';
import type { Report } from '../report.ts';
import { bucketSchemes, type MountFields } from '../schema/mounts.ts';
import type { TaskFields } from '../schema/task.ts';
import { nodeAt, type Path, type YamlNode } from '../yaml/node.ts';

/** Allowed address schemes of mount sources. `https` names an Azure container, `hf` a Hugging Face repository. */
const schemes: readonly string[] = [...Object.values(bucketSchemes), 'https', 'hf'];

const modes = { mount: 'MOUNT', copy: 'COPY', mount_cached: 'MOUNT_CACHED' } as const;

/** The section `workdir`. */
export function readWorkdir(fields: TaskFields['workdir'], override: string | undefined, base: PathBase): Workdir | undefined {
  if (override !== undefined) return { kind: 'path', path: expandPath(override, base) };
  if (fields === undefined) return undefined;
  if (typeof fields === 'string') return { kind: 'path', path: expandPath(fields, base) };
  return { kind: 'git', url: fields.url, ref: fields.ref };
}

/** The section `file_mounts`. */
export function readFileMounts(fields: TaskFields['file_mounts'], base: PathBase, report: Report): Task['fileMounts'] {
  const mounts: FileMount[] = [];
  const targets = new Set<string>();
  for (const [key, value] of Object.entries(fields ?? {})) {
    const path = ['file_mounts', key];
    const target = cleanTarget(key);
    if (schemeOf(key) !== undefined) report.atKey(path, 'the target must be a path on the machine, not an address');
    if (targets.has(target)) report.atKey(path, 'two mounts have this target');
    targets.add(target);
    const source = typeof value === 'string' ? readSource(value, 'COPY', path, base, report) : readBucket(value, path, base, report);
    if (source !== undefined) mounts.push({ target, source });
  }
  return mounts;
}

/** Normalises a target, so that two mounts with the same target are detected. `~` stays: the machine expands it. */
function cleanTarget(text: string): string {
  const path = posix.normalize(text);
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Path of the mount with a target, which the document may spell differently. */
export function mountPath(root: YamlNode, target: string): Path {
  const mounts = nodeAt(root, ['file_mounts']);
  const keys = mounts?.kind === 'map' ? [...mounts.entries.keys()] : [];
  return ['file_mounts', keys.find((key) => cleanTarget(key) === target) ?? target];
}

function schemeOf(text: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
}

type Mode = (typeof modes)[keyof typeof modes];

function readSource(text: string, mode: Mode, path: Path, base: PathBase, report: Report): FileMount['source'] | undefined {
  const scheme = schemeOf(text);
  if (scheme === undefined) return { kind: 'path', path: expandPath(text, base) };
  if (schemes.includes(scheme)) return { kind: 'bucket', uri: text, mode };
  // Quote only the scheme, and nothing when the address contains a variable: its value must not be shown.
  const shown = report.textAt(path).includes('$') ? '' : ` ${quote(`${scheme}://`)}`;
  const meant = didYouMean(scheme, schemes);
  report.at(
    path,
    `unknown kind of address${shown}`,
    meant === undefined ? `Known: ${schemes.join('://, ')}://` : `Did you mean '${meant}://'?`,
  );
  return undefined;
}

function readBucket(fields: MountFields, path: Path, base: PathBase, report: Report): FileMount['source'] | undefined {
  const mode = modes[fields.mode ?? 'mount'];
  const { source } = fields;
  if (typeof source === 'string' && schemeOf(source) !== undefined) return readSource(source, mode, [...path, 'source'], base, report);
  // Copied to the machine directly, without a bucket that would need a name.
  if (typeof source === 'string' && mode === 'COPY') return { kind: 'path', path: expandPath(source, base) };
  if (source !== undefined && mode === 'COPY') {
    report.at([...path, 'source'], 'a copy has one source', 'Give each path a mount of its own.');
    return undefined;
  }
  if (fields.name === undefined) {
    const message =
      source === undefined ? 'needs a source, or the name of a bucket' : 'needs the name of the bucket that the source is put into';
    report.at(path, message, 'Write name: BUCKET, or source: s3://BUCKET/PATH.');
    return undefined;
  }
  const scheme = fields.store === undefined ? 'bucket' : bucketSchemes[fields.store];
  return { kind: 'bucket', uri: `${scheme}://${fields.name}`, mode };
}
