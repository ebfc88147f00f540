import { cpSync, existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import type { ControllerHost } from '../domain/controller-host.ts';
import type { PortableFile } from '../providers/provider.ts';
import type { Remote } from '../remote/remote.ts';
import { shellQuote } from '../remote/shell-quote.ts';
import { codeFingerprint } from '../shared/code-version.ts';
import { SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import { programFile } from '../shared/program-files.ts';
import { randomHex } from '../shared/random-hex.ts';
import { bundlePrefix, checksumFile, makeBundle } from './bundle.ts';

/** What is put on a controller's machine besides the program. */
export interface Installation {
  readonly host: ControllerHost;
  /** Configuration, pools, credentials: each of mode 0600. */
  readonly files: readonly PortableFile[];
  /** Variables the controller gets, such as where credentials are. */
  readonly environment: Readonly<Record<string, string>>;
}

/** What installing needs of this machine. */
export interface InstallDeps {
  readonly paths: HomePaths;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
}

/** Where a controller's files are on its machine. */
function controllerDir(remote: Remote): string {
  return posix.join(remote.baseDir, 'controller');
}

/** Its SVC_HOME. */
export function controllerHome(remote: Remote): string {
  return posix.join(controllerDir(remote), 'home');
}

/** What tells this program from others, and what the folder of its bundle is called. */
export function programFingerprint(): string {
  return codeFingerprint(programFile('.'));
}

/** What `uname -m` says where the Node.js of this machine runs. */
const machineNames: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

/** Programs that stay on the machine: the one in use and those before it. */
const keptVersions = 3;

/** Copying Node.js, 121 MB, over a slow line, ms. */
const copyTimeoutMs = 1_800_000;
const shortTimeoutMs = 120_000;

/**
 * Puts Node.js, the program and its settings onto a machine and makes them the ones that are used from now on. What is there already is not sent
 * again; a controller that runs goes on as it is. Safe to repeat after a crash at any line. Throws SVC_HOST_UNFIT where Node.js cannot run.
 */
export async function installController(remote: Remote, what: Installation, deps: InstallDeps): Promise<string> {
  const { signal, onStep } = deps;
  const dir = controllerDir(remote);
  const fingerprint = programFingerprint();
  await succeed(remote, ['mkdir', '-p', '-m', '700', dir, `${dir}/home`, `${dir}/versions`], signal);
  await putNode(remote, dir, deps);
  onStep('Putting the program on the controller’s machine');
  const bundle = join(cacheDir(deps.paths), `${bundlePrefix}${fingerprint}`);
  await makeBundle(bundle);
  const version = `${dir}/versions/${fingerprint}`;
  await remote.copyTo(bundle, version, { signal });
  await succeed(remote, ['sh', '-c', `cd ${shellQuote(version)} && sha256sum -c --quiet ${checksumFile}`], signal);
  await putSettings(remote, dir, what);
  // Processes that are about to end may still load parts of the program they were started from.
  const prune = `ls -dt versions/* | tail -n +${keptVersions + 1} | while read -r old; do rm -rf "$old"; done`;
  // One step: whoever starts a process sees the old program or the new one.
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

/** Ends the controller; services that exist go on. */
export async function stopController(remote: Remote, signal: AbortSignal): Promise<void> {
  await succeed(remote, ['sh', `${controllerDir(remote)}/controller.sh`, 'stop', controllerDir(remote)], signal);
}

/** Makes it start when its machine does; tells how: `systemd`, `cron` or `none`. */
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

/** A folder with nothing but the binary, as folders are what is copied. */
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

/** A link where that is possible: it is a large file. */
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
