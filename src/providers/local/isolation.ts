import { accessSync, constants, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalIsolation } from '../../domain/config.ts';
import { enterComplaint } from '../../remote/isolation/enter-settings.ts';
import { type FoundIsolation, findIsolation, kindsFor } from '../../remote/isolation/find-isolation.ts';
import { type IsolationKind, type OutboundKind, isolationKinds, isolationNames } from '../../remote/isolation/kinds.ts';
import { type FoundLimits, readLimits } from '../../remote/isolation/limits.ts';
import { runCommand } from '../../remote/run-command.ts';
import type { Clock } from '../../shared/clock.ts';
import { envVar, wholeEnv } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programFile } from '../../shared/program-files.ts';
import { identifyProcess } from '../../shared/system/process-identity.ts';
import { randomHex } from '../../shared/hex.ts';
import { writeEnterFiles, filesIn } from './machine-store.ts';
import { readIfThere } from '../../shared/system/files.ts';
import { removeTree } from './remove-tree.ts';

/** The isolation of new machines, and how to get a better one. */
export interface IsolationChoice extends FoundIsolation {
  readonly isForced: boolean;
  readonly remedies: readonly string[];
}

/** What a try depends on. */
export interface IsolationContext {
  readonly paths: HomePaths;
  readonly clock: Clock;
}

/** A good try takes up to 100 ms, or seconds on a busy computer. An aborted try weakens this process's isolation. */
const tryTimeoutMs = 20_000;

/** Users may configure these, but this version does not support them. */
const notBuiltIn = new Set<string>(['podman', 'container']);

const choices = new Map<string, Promise<IsolationChoice>>();

/** The configured or best isolation, tried once per process. Throws SVC_ISOLATION when the configured one fails. */
export function chooseIsolation(context: IsolationContext, configured: LocalIsolation): Promise<IsolationChoice> {
  const requested = envVar('SVC_LOCAL_ISOLATION') ?? configured;
  const known = choices.get(requested);
  if (known !== undefined) return known;
  const choice = choose(context, requested);
  choices.set(requested, choice);
  // Only for callers that wait now: the user may fix the cause.
  choice.catch(() => choices.delete(requested));
  return choice;
}

async function choose(context: IsolationContext, requested: string): Promise<IsolationChoice> {
  if (notBuiltIn.has(requested)) {
    throw new SvcError(
      'SVC_ISOLATION',
      `The isolation '${requested}' is not built into this version (there are: ${isolationKinds.join(', ')}).`,
    );
  }
  const forced = isolationKinds.find((kind) => kind === requested);
  if (requested !== 'auto' && forced === undefined) {
    throw new SvcError('SVC_ISOLATION', `There is no isolation called '${requested}' (there are: auto, ${isolationKinds.join(', ')}).`);
  }
  const kinds = forced === undefined ? kindsFor({ isRoot: process.getuid?.() === 0 }) : [forced];
  const found = await findIsolation(kinds, { hasRoute, whyNot: (kind, outbound, argv) => whyNot(context, kind, outbound, argv) });
  if (forced !== undefined && found.kind !== forced) throw doesNotWork(forced, found);
  return { ...found, isForced: forced !== undefined, remedies: remediesFor(found.kind, found.outbound) };
}

function doesNotWork(forced: IsolationKind, { refused }: FoundIsolation): SvcError {
  const [[, why] = []] = refused;
  const remedies = remediesFor('none', 'host');
  return new SvcError('SVC_ISOLATION', `The isolation '${forced}' (${isolationNames[forced]}) does not work here: ${why}`, {
    hint: ['Unset SVC_LOCAL_ISOLATION and local.isolation', ...remedies].join('; or: '),
  });
}

/** The limits that this computer can enforce now. */
export async function findLimits({ clock }: Pick<IsolationContext, 'clock'>): Promise<FoundLimits> {
  const argv = ['sh', programFile('src/node/limits.sh'), 'report'];
  const { stdout } = await runCommand(argv, { env: wholeEnv(), clock, timeoutMs: tryTimeoutMs });
  const [, controllers, lack] = /^limits=(.*)\nlimits_lack=(.*)$/m.exec(stdout) ?? [];
  return readLimits(controllers, lack ?? 'delegation');
}

/** Whether machines find Perl. They search for it in the same folders. */
export async function hasPerl({ clock }: Pick<IsolationContext, 'clock'>): Promise<boolean> {
  const argv = ['sh', '-c', 'command -v perl'];
  return (await runCommand(argv, { env: wholeEnv(), clock, timeoutMs: tryTimeoutMs })).exitCode === 0;
}

/** Removes the try's folder if the trying process was killed meanwhile. */
const thenTidy = `
"$@"
code=$?
trier=
{ read -r stat < "/proc/$PPID/stat"; } 2>/dev/null && case \${stat##*) } in [ZX]*) ;; *) trier=alive ;; esac
[ -n "$trier" ] || rm -rf -- "$0"
exit "$code"`;

/** Runs a command in the isolation. Returns why it did not exit with 0. */
async function whyNot(
  context: IsolationContext,
  kind: IsolationKind,
  outbound: OutboundKind,
  argv: readonly string[],
): Promise<string | undefined> {
  if (process.platform !== 'linux') return `it needs Linux, and this is ${process.platform}`;
  const id = `${process.pid.toString(36)}-${randomHex(6)}`;
  const dir = join(context.paths.runtimeDir, `try-${id}`);
  const files = filesIn(dir, dir, id);
  await removeAbandonedTries(context);
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeEnterFiles(files, context.paths, kind, outbound);
    const result = await runCommand(['sh', '-c', thenTidy, dir, 'sh', files.enter, ...argv], {
      env: wholeEnv(),
      clock: context.clock,
      timeoutMs: tryTimeoutMs,
    });
    if (result.exitCode === 0) return undefined;
    return (
      enterComplaint(result.stderr) ??
      enterComplaint(readIfThere(join(dir, 'outbound.log'))) ??
      `it ended with exit code ${result.exitCode}`
    );
  } finally {
    // A plain `rm` fails: for each overlay the kernel creates a folder that its owner may not read.
    await removeTree(dir, context.clock);
  }
}

/** Removes the folders of processes that were killed during a try. */
async function removeAbandonedTries({ paths: { runtimeDir }, clock }: IsolationContext): Promise<void> {
  mkdirSync(runtimeDir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(runtimeDir)) {
    const pid = /^try-([0-9a-z]+)-/.exec(name)?.[1];
    if (pid !== undefined && identifyProcess(Number.parseInt(pid, 36)) === undefined) await removeTree(join(runtimeDir, name), clock);
  }
}

/** Routes over loopback do not count. */
function hasRoute(): boolean {
  const ipv4 = readIfThere('/proc/net/route').split('\n').slice(1);
  const ipv6 = readIfThere('/proc/net/ipv6_route').split('\n');
  return ipv4.some((line) => line.trim() !== '' && !line.startsWith('lo\t')) || ipv6.some(isDefaultIpv6Route);
}

function isDefaultIpv6Route(line: string): boolean {
  return /^0{32} 00 /.test(line) && !/\slo$/.test(line);
}

function setting(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    // This kernel does not have the setting.
    return undefined;
  }
}

/** Empty when there is nothing better. */
function remediesFor(kind: IsolationKind, outbound: OutboundKind): readonly string[] {
  return [...isolationRemedies(kind), ...outboundRemedies(outbound)];
}

function isolationRemedies(kind: IsolationKind): readonly string[] {
  if (kind !== 'none') return [];
  if (process.platform !== 'linux') return ['Run svc on Linux to have several machines of one service on one computer'];
  const remedies: string[] = [];
  if (setting('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1') {
    remedies.push(
      'AppArmor refuses user namespaces: sudo apt-get install bubblewrap apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict',
    );
  }
  if (setting('/proc/sys/user/max_user_namespaces') === '0') remedies.push('sudo sysctl user.max_user_namespaces=15000');
  if (setting('/proc/sys/kernel/unprivileged_userns_clone') === '0') remedies.push('sudo sysctl kernel.unprivileged_userns_clone=1');
  remedies.push('Install util-linux and iproute2 where unshare, setpriv or ip is missing: sudo apt-get install util-linux iproute2');
  return remedies;
}

function outboundRemedies(outbound: OutboundKind): readonly string[] {
  if (outbound !== 'proxy') return [];
  const install = 'For outbound connections that need no proxy: sudo apt-get install slirp4netns';
  return canUseTun() ? [install] : [`${install}; and let users open its device: sudo modprobe tun && sudo chmod 666 /dev/net/tun`];
}

/** /dev/net/tun creates networks. */
function canUseTun(): boolean {
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK);
    return true;
  } catch {
    // It is missing, or only root may use it.
    return false;
  }
}
