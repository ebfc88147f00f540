import { createHash } from 'node:crypto';
import { copyFileSync, createReadStream, existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SvcError } from '../../shared/errors.ts';
import { isOlderVersion } from '../../shared/version.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { randomHex } from '../../shared/hex.ts';
import type { Host } from './host.ts';
import type { HostFacts } from './host-facts.ts';

/** `uname -m` names of architectures with a Node.js build, with Node.js' names. */
const architectures: Readonly<Record<string, string>> = { x86_64: 'x64', aarch64: 'arm64', arm64: 'arm64' };

/** The oldest Node.js of an SSH host that runs the forwarder and the proxy. */
const oldestOwn = '22.18.0';

/** Space for the binary, its copy during the transfer, and a reserve. */
const neededBytes = 300 * 1_048_576;

/** Starting Node takes 50 ms; on a busy SSH host much longer. */
const checkTimeoutMs = 20_000;

/** The binary's name on SSH hosts. Another binary of the same version has another name. */
let ownName: Promise<string> | undefined;

/**
 * Path of a Node binary on an SSH host: a shared copy of the running one, or on another architecture the SSH host's
 * own. Throws SVC_HOST_UNFIT when there is none.
 */
export async function provideNode(host: Host, facts: HostFacts, paths: HomePaths): Promise<string> {
  if (process.platform !== 'linux' || architectures[facts.arch] !== process.arch) return ownNode(facts);
  const name = await (ownName ??= nameOwnBinary());
  const dir = `${facts.home}/.svc/bin/${name}`;
  if (await runs(host, `${dir}/node`)) return `${dir}/node`;
  if (facts.freeBytes < neededBytes)
    throw new SvcError(
      'SVC_HOST_UNFIT',
      `Node.js needs ${neededBytes / 1_048_576} MB of disk, ${Math.floor(facts.freeBytes / 1_048_576)} MB are left`,
    );
  // The rename ensures that the final name never has half a binary. If another process was faster, `mv` moves this
  // folder into that one, and `rm` removes it there.
  const part = `${facts.home}/.svc/bin/.part-${name}-${randomHex(6)}`;
  await host.remote.copyTo(stagedBinary(paths, name), part);
  await host.remote.exec(['sh', '-c', '[ -e "$2" ] || mv "$1" "$2"; rm -rf "$1" "$2/${1##*/}"', 'sh', part, dir]);
  if (!(await runs(host, `${dir}/node`)))
    throw new SvcError('SVC_HOST_UNFIT', `Node.js ${process.version} was brought there and does not run`);
  return `${dir}/node`;
}

async function nameOwnBinary(): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(process.execPath)) hash.update(chunk);
  return `node-${process.version}-${hash.digest('hex').slice(0, 12)}`;
}

async function runs(host: Host, path: string): Promise<boolean> {
  const { exitCode, stdout } = await host.remote.exec([path, '--version'], { timeoutMs: checkTimeoutMs });
  return exitCode === 0 && stdout.trim() === process.version;
}

/** A folder with only the binary: a hard link to the running one, where possible. */
function stagedBinary(paths: HomePaths, name: string): string {
  const dir = join(paths.sshDir, name);
  const file = join(dir, 'node');
  if (existsSync(file)) return dir;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const temporary = `${dir}.${randomHex(6)}`;
  try {
    linkSync(process.execPath, temporary);
  } catch {
    // It is another file system, or one without hard links.
    copyFileSync(process.execPath, temporary);
  }
  renameSync(temporary, file);
  // rename(2) does nothing when both names link to the same file: another process was faster.
  rmSync(temporary, { force: true });
  return dir;
}

function ownNode({ arch, node }: HostFacts): string {
  if (node !== undefined && !isOlderVersion(node.version, oldestOwn)) return node.path;
  const has = node === undefined ? 'it has none' : `it has ${node.version}`;
  throw new SvcError('SVC_HOST_UNFIT', `its architecture ${arch} needs a Node.js of its own, ${oldestOwn} or newer, and ${has}`);
}
