import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BootKind,
  type BootProgram,
  bootEnv,
  chooseBoot,
  cronCommand,
  cronLine,
  fitsBootEntry,
  longestCronLine,
  systemdUnit,
  unitStartLine,
  withCronLine,
  withoutCronLine,
} from '../../domain/boot-entry.ts';
import type { ExecResult } from '../../remote/remote.ts';
import { notRunnable, runCommand } from '../../remote/run-command.ts';
import { shellQuote } from '../../remote/shell-quote.ts';
import type { Clock } from '../../shared/clock.ts';
import { homeDir, wholeEnv } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programFile } from '../../shared/program-files.ts';
import { readIfThere, writeFileAtomic } from '../../shared/system/files.ts';

/** Timeout of systemctl, loginctl and crontab, ms. A user's first systemd takes seconds to start. */
const commandMs = 30_000;

/** The user and the environment for which the controller is to be started after a reboot. */
export interface BootDeps {
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  /** Of the user whose service manager starts the controller. */
  readonly uid: number;
  /** Folder of root's units; default: `/etc/systemd/system`. */
  readonly systemUnits?: string;
}

/** Those of this process. */
export function bootDeps({ paths, clock, env }: Pick<BootDeps, 'paths' | 'clock' | 'env'>): BootDeps {
  return { paths, clock, env, uid: process.getuid?.() ?? 0 };
}

/** An installed start after a reboot. */
export interface BootEntry {
  readonly kind: BootKind;
  readonly name: string;
  /** The unit's file; null for a line in the crontab. */
  readonly file: string | null;
  /** False: it starts another copy of svc, such as one that was moved. */
  readonly isCurrent: boolean;
}

const svcFile = (): string => programFile('svc');

/** One name per SVC_HOME: a user may have several. */
function nameFor({ home }: HomePaths): string {
  return `svc-controller-${createHash('sha256').update(home).digest('hex').slice(0, 8)}`;
}

function unitFile(kind: Exclude<BootKind, 'cron'>, { paths, env, systemUnits = '/etc/systemd/system' }: BootDeps): string {
  const folder = kind === 'system-unit' ? systemUnits : join(env('XDG_CONFIG_HOME') ?? join(homeDir(), '.config'), 'systemd/user');
  return join(folder, `${nameFor(paths)}.service`);
}

const kindOf = ({ uid }: BootDeps): Exclude<BootKind, 'cron'> => (uid === 0 ? 'system-unit' : 'user-unit');

function execute(argv: readonly string[], { uid, env, clock }: BootDeps, input?: string): Promise<ExecResult> {
  // `su` and cron do not set the variable that leads to the user's systemd.
  const runtime = env('XDG_RUNTIME_DIR') ?? `/run/user/${uid}`;
  return runCommand(argv, {
    env: { ...wholeEnv(), PATH: env('PATH'), XDG_RUNTIME_DIR: runtime, LC_ALL: 'C' },
    clock,
    timeoutMs: commandMs,
    ...(input !== undefined && { input }),
  });
}

const systemctl = (kind: BootKind, args: readonly string[], deps: BootDeps): Promise<ExecResult> =>
  execute(['systemctl', ...(kind === 'user-unit' ? ['--user'] : []), ...args], deps);

/** The installed unit of this home, without running a program; undefined when there is none. */
function installedUnit(deps: BootDeps): BootEntry | undefined {
  const kind = kindOf(deps);
  const file = unitFile(kind, deps);
  if (!existsSync(file)) return undefined;
  const isCurrent = readFileSync(file, 'utf8')
    .split('\n')
    .includes(unitStartLine({ svc: svcFile() }));
  return { kind, name: nameFor(deps.paths), file, isCurrent };
}

/** What starts the controller after a reboot; undefined: nothing does. Runs no program unless cron was installed. */
export async function findBootEntry(deps: BootDeps): Promise<BootEntry | undefined> {
  return installedUnit(deps) ?? (readRecord(deps.paths)?.cron === true ? findCronLine(deps) : undefined);
}

async function findCronLine(deps: BootDeps): Promise<BootEntry | undefined> {
  const name = nameFor(deps.paths);
  const line = (await readCrontab(deps)).split('\n').find((one) => one.endsWith(` # ${name}`));
  if (line === undefined) return undefined;
  return { kind: 'cron', name, file: null, isCurrent: line.includes(cronCommand({ svc: svcFile() }, shellQuote)) };
}

function readRecord({ bootRecord }: HomePaths): { readonly cron: boolean } | undefined {
  const record = parseJson(readIfThere(bootRecord));
  return isObject(record) ? { cron: record['cron'] === true } : undefined;
}

const writeRecord = ({ bootRecord }: HomePaths, cron: boolean): void => writeFileAtomic(bootRecord, JSON.stringify({ cron }));

/** Whether the user should learn now that nothing starts the controller after a reboot: true once per SVC_HOME. */
export function mentionsBoot(deps: BootDeps): boolean {
  if (!existsSync(deps.paths.home) || readRecord(deps.paths) !== undefined || installedUnit(deps) !== undefined) return false;
  writeRecord(deps.paths, false);
  return true;
}

function programOf({ paths, env }: BootDeps): BootProgram {
  return {
    name: nameFor(paths),
    svc: svcFile(),
    home: paths.home,
    controllerLog: paths.controllerLog,
    env: { HOME: homeDir(), ...bootEnv(env).env },
  };
}

/** Starts the controller through its installed unit, so that systemd restarts it. False: there is none, or it fails. */
export async function startInstalledUnit(deps: BootDeps): Promise<boolean> {
  const unit = installedUnit(deps);
  if (unit === undefined || !unit.isCurrent) return false;
  return (await systemctl(unit.kind, ['start', '--no-block', unit.name], deps)).exitCode === 0;
}

/** Has the machine start the controller after a reboot. Throws SVC_INSTALL_REFUSED; then nothing is installed. */
export async function installBootEntry(deps: BootDeps): Promise<BootEntry> {
  const program = programOf(deps);
  if (!fitsBootEntry(program))
    throw refused('A path or a variable of the controller contains a line break.', 'Use another SVC_HOME or PATH.');
  const kind = chooseBoot({
    isRoot: deps.uid === 0,
    hasSystemd: await runsSystemd(deps),
    hasCrontab: (await execute(['crontab', '-l'], deps)).exitCode < notRunnable,
  });
  if (kind === undefined) {
    throw refused(
      'This machine runs no systemd, and it has no crontab program.',
      'Install cron (Debian or Ubuntu: sudo apt install cron) and run the command again. Or have the machine run at boot: svc controller start',
    );
  }
  if (kind === 'cron') await installCronLine(program, deps);
  else {
    await installUnit(kind, program, deps);
    // Of a time without systemd. Both would start a controller.
    if (readRecord(deps.paths)?.cron === true) await removeCronLine(program.name, deps);
  }
  writeRecord(deps.paths, kind === 'cron');
  return { kind, name: program.name, file: kind === 'cron' ? null : unitFile(kind, deps), isCurrent: true };
}

/** Characters of a crontab; the output of a longer one could be cut off. */
const longestCrontab = 500_000;

/** Without a running systemd, systemctl prints `offline`, or cannot connect and prints nothing. */
async function runsSystemd(deps: BootDeps): Promise<boolean> {
  const { exitCode, stdout } = await execute(['systemctl', 'is-system-running'], deps);
  return exitCode < notRunnable && !['', 'offline', 'unknown'].includes(stdout.trim());
}

async function installUnit(kind: Exclude<BootKind, 'cron'>, program: BootProgram, deps: BootDeps): Promise<void> {
  if (kind === 'user-unit') await enableLinger(deps);
  const file = unitFile(kind, deps);
  const before = readIfThere(file);
  // Mode 0644, as of other units; it holds no secret.
  writeFileAtomic(file, systemdUnit(kind, program), 0o644);
  for (const args of [['daemon-reload'], ['enable', program.name]]) {
    const { exitCode, stderr } = await systemctl(kind, args, deps);
    if (exitCode === 0) continue;
    if (before === '') rmSync(file, { force: true });
    else writeFileAtomic(file, before, 0o644);
    const user = kind === 'user-unit' ? ' --user' : '';
    throw refused(
      `systemd refused the unit ${program.name}: ${stderr.trim()}`,
      `See the state of systemd: systemctl${user} status. Then run again: svc controller install`,
    );
  }
}

/** Without linger, a user's systemd starts at the first login and ends, with all its processes, at the last logout. */
async function enableLinger(deps: BootDeps): Promise<void> {
  const name = deps.env('USER') ?? String(deps.uid);
  const { exitCode, stderr } = await execute(['loginctl', 'enable-linger', name], deps);
  if (exitCode === 0) return;
  throw refused(
    `The units of ${name} may not start at boot: ${stderr.trim() || 'loginctl enable-linger failed'}`,
    `Have an administrator run: sudo loginctl enable-linger ${name}. Then run again: svc controller install`,
  );
}

/**
 * The user's crontab; empty without one, or without the program. Throws when it cannot be read completely: to write it
 * back would destroy the user's lines.
 */
async function readCrontab(deps: BootDeps): Promise<string> {
  const { exitCode, stdout, stderr } = await execute(['crontab', '-l'], deps);
  const hasNone = exitCode >= notRunnable || (exitCode === 1 && /no crontab|No such file/i.test(stderr));
  if (exitCode !== 0 && hasNone) return '';
  if (exitCode !== 0) throw refused(`crontab does not show its lines: ${stderr.trim()}`, 'Run: crontab -l');
  if (stdout.includes('\uFFFD') || stdout.length > longestCrontab) {
    throw refused(
      'The crontab is not UTF-8 text, or is too long to be kept as it is.',
      'Edit it with crontab -e, then run the command again.',
    );
  }
  return stdout;
}

async function installCronLine(program: BootProgram, deps: BootDeps): Promise<void> {
  const line = cronLine(program, shellQuote);
  if (Buffer.byteLength(line) > longestCronLine) {
    throw refused(
      `The line for cron would have ${Buffer.byteLength(line)} bytes; cron reads ${longestCronLine}.`,
      'Run it with a shorter PATH: PATH=/usr/local/bin:/usr/bin:/bin svc controller install',
    );
  }
  await writeCrontab(withCronLine(await readCrontab(deps), program.name, line), deps);
}

async function writeCrontab(text: string, deps: BootDeps): Promise<void> {
  const { exitCode, stderr } = await execute(['crontab', '-'], deps, text);
  if (exitCode === 0) return;
  throw refused(`crontab refused the change: ${stderr.trim()}`, 'See who may use it: man crontab (cron.allow and cron.deny).');
}

/** Undoes `installBootEntry`. Returns what was removed; undefined: nothing was installed. A running controller goes on. */
export async function uninstallBootEntry(deps: BootDeps): Promise<BootEntry | undefined> {
  const unit = installedUnit(deps);
  // The record of it may have been lost with an earlier SVC_HOME.
  const line = unit === undefined || readRecord(deps.paths)?.cron === true ? await findCronLine(deps) : undefined;
  if (existsSync(deps.paths.home) && (unit ?? line) !== undefined) writeRecord(deps.paths, false);
  if (line !== undefined) await removeCronLine(line.name, deps);
  if (unit === undefined || unit.file === null) return line;
  // Where systemd does not run any more, removing the file is enough.
  await systemctl(unit.kind, ['disable', unit.name], deps);
  rmSync(unit.file, { force: true });
  await systemctl(unit.kind, ['daemon-reload'], deps);
  return unit;
}

async function removeCronLine(name: string, deps: BootDeps): Promise<void> {
  const crontab = await readCrontab(deps);
  const without = withoutCronLine(crontab, name);
  if (without !== crontab) await writeCrontab(without, deps);
}

function refused(message: string, hint: string): SvcError {
  return new SvcError('SVC_INSTALL_REFUSED', message, { hint });
}
