import { cpSync, existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import type { RemoteControllerInfo } from '../domain/remote-controller-info.ts';
import type { PortableFile } from '../providers/provider.ts';
import type { Remote } from '../remote/remote.ts';
import { shellQuote } from '../remote/shell-quote.ts';
import { codeFingerprint } from '../shared/version.ts';
import { SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import { programFile } from '../shared/program-files.ts';
import { randomHex } from '../shared/hex.ts';
import { bundleFor, checksumFile } from './program-bundle.ts';

/** What is installed on a controller's machine besides the program. */
export interface Installation {
  readonly host: RemoteControllerInfo;
  /** With mode 0600: configuration, pools, credentials. */
  readonly files: readonly PortableFile[];
  readonly environment: Readonly<Record<string, string>>;
}

interface InstallDeps {
  readonly paths: HomePaths;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
}

function controllerDir(remote: Remote): string {
  return posix.join(remote.baseDir, 'controller');
}

/** SVC_HOME of the controller on its machine. */
export function controllerHome(remote: Remote): string {
  return posix.join(controllerDir(remote), 'home');
}

/** Identifies this version of the program and names its bundle's folder. */
export function programFingerprint(): string {
  return codeFingerprint(programFile('.'));
}

/** What `uname -m` prints on machines that can run this machine's Node.js. */
const machineNames: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

/** Program versions on the machine: the current one and its predecessors. */
const keptVersions = 3;

/** Limit for copying Node.js, 121 MB, over a slow line, ms. */
const copyTimeoutMs = 1_800_000;
const shortTimeoutMs = 120_000;

/**
 * Installs Node.js, the program and its settings, and makes them current. Existing files are not sent again, and a
 * running controller continues. Safe to repeat after a crash. Throws SVC_HOST_UNFIT where Node.js cannot run.
 */
export async function installController(remote: Remote, what: Installation, deps: InstallDeps): Promise<string> {
  const { signal, onStep } = deps;
  const dir = controllerDir(remote);
  const fingerprint = programFingerprint();
  await succeed(remote, ['mkdir', '-p', '-m', '700', dir, `${dir}/home`, `${dir}/versions`], signal);
  await putNode(remote, dir, deps);
  onStep('Putting the program on the controller’s machine');
  const bundle = await bundleFor(deps.paths);
  const version = `${dir}/versions/${fingerprint}`;
  await remote.copyTo(bundle, version, { signal });
  await succeed(remote, ['sh', '-c', `cd ${shellQuote(version)} && sha256sum -c --quiet ${checksumFile}`], signal);
  await putSettings(remote, dir, what);
  // Ending processes may still load parts of their old program, so some versions are kept.
  const prune = `ls -dt versions/* | tail -n +${keptVersions + 1} | while read -r old; do rm -rf "$old"; done`;
  // Atomic: a starting process sees the old program or the new one.
  const link = `ln -sfn ${shellQuote(`versions/${fingerprint}`)} current.new && mv -T current.new current && cp current/src/node/controller.sh controller.new && mv -f controller.new controller.sh`;
  await succeed(
    remote,
    ['sh', '-c', `cd ${shellQuote(dir)} && touch ${shellQuote(`versions/${fingerprint}`)} && ${link} && ${prune}`],
    signal,
  );
  return fingerprint;
}

/** Starts the controller unless it runs. */
export async function startController(remote: Remote, signal: AbortSignal): Promise<void> {
  await succeed(remote, ['sh', `${controllerDir(remote)}/controller.sh`, 'start', controllerDir(remote)], signal);
}

/** Ends the controller; existing services continue. */
export async function stopController(remote: Remote, signal: AbortSignal): Promise<void> {
  await succeed(remote, ['sh', `${controllerDir(remote)}/controller.sh`, 'stop', controllerDir(remote)], signal);
}

/** Makes the controller start with its machine. Returns the method: `systemd`, `cron` or `none`. */
export async function startAtBoot(remote: Remote, signal: AbortSignal): Promise<string> {
  const said = await succeed(remote, ['sh', `${controllerDir(remote)}/controller.sh`, 'boot', controllerDir(remote)], signal);
  return said.trim();
}

/** Undoes `startAtBoot`. */
export async function forgetAtBoot(remote: Remote, signal: AbortSignal): Promise<void> {
  await succeed(remote, ['sh', `${controllerDir(remote)}/controller.sh`, 'forget', controllerDir(remote)], signal);
}

async function putNode(remote: Remote, dir: string, { paths, signal, onStep }: InstallDeps): Promise<void> {
  const folder = `node-${process.version}`;
  const works = await remote.exec(['sh', '-c', `cd ${shellQuote(dir)} && [ "$(./node --version)" = ${process.version} ]`], { signal });
  if (works.exitCode === 0) return;
  const machine = (await succeed(remote, ['uname', '-m'], signal)).trim();
  if (machine !== machineNames[process.arch]) {
    const hint = `Choose a machine of this architecture (${process.arch}) in serve.controller.resources, or run this command on one of the other.`;
    throw new SvcError('SVC_HOST_UNFIT', `The controller's machine is ${machine}; the Node.js of this machine is for ${process.arch}.`, {
      hint,
    });
  }
  onStep('Copying Node.js to the controller’s machine');
  const staged = join(cacheDir(paths), folder);
  stageNode(staged);
  await remote.copyTo(staged, `${dir}/${folder}`, { signal });
  const link = `cd ${shellQuote(dir)} && ln -sfn ${folder}/node node.new && mv -T node.new node && ./node --version`;
  const { exitCode, stderr } = await remote.exec(['sh', '-c', link], { signal, timeoutMs: copyTimeoutMs });
  if (exitCode !== 0) {
    const hint = 'It needs Linux with glibc >= 2.28 and libstdc++; choose another image or machine.';
    throw new SvcError('SVC_HOST_UNFIT', `Node.js ${process.version} does not run on the controller's machine: ${lastLine(stderr)}`, {
      hint,
    });
  }
}

/** Only whole folders are copied, so this one has only the binary. */
function stageNode(folder: string): void {
  if (existsSync(folder)) return;
  const draft = `${folder}.${randomHex(8)}`;
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  mkdirSync(draft, { mode: 0o700 });
  try {
    putBinary(join(draft, 'node'));
    if (!existsSync(folder)) renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** A hard link where possible: the file is large. */
function putBinary(path: string): void {
  try {
    linkSync(process.execPath, path);
  } catch {
    cpSync(process.execPath, path);
  }
}

async function putSettings(remote: Remote, dir: string, { host, files, environment }: Installation): Promise<void> {
  const exports = Object.entries({ ...remote.environment, ...environment }).map(([name, value]) => `export ${name}=${shellQuote(value)}\n`);
  await remote.writeFile(`${dir}/settings`, exports.join(''));
  for (const { path, content, once } of files) {
    const target = `${dir}/home/${path}`;
    if (once !== true || (await remote.readFile(target)) === undefined) await remote.writeFile(target, content);
  }
  await remote.writeFile(`${dir}/home/host.json`, `${JSON.stringify(host, undefined, 2)}\n`);
}

const cacheDir = (paths: HomePaths): string => join(paths.home, 'cache');

async function succeed(remote: Remote, argv: readonly string[], signal: AbortSignal): Promise<string> {
  const { exitCode, stdout, stderr } = await remote.exec(argv, { signal, timeoutMs: shortTimeoutMs });
  if (exitCode === 0) return stdout;
  throw new SvcError('SVC_CONTROLLER_START', `Preparing the controller's machine failed: ${lastLine(stderr) || `exit code ${exitCode}`}`, {
    hint: 'Run the command again; it goes on where it stopped. To give the machine back: svc controller down',
  });
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
