import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalIsolation } from '../../domain/config.ts';
import { enterComplaint } from '../../remote/isolation/enter-settings.ts';
import { findIsolation, kindsFor, type FoundIsolation } from '../../remote/isolation/find-isolation.ts';
import { isolationKinds, isolationNames, type IsolationKind, type OutboundKind } from '../../remote/isolation/kinds.ts';
import { runCommand } from '../../remote/run-command.ts';
import type { Clock } from '../../shared/clock.ts';
import { envVar, wholeEnv } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { identifyProcess } from '../../shared/process-identity.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { remediesFor } from './isolation-remedies.ts';
import { writeEnterFiles } from './machine-files.ts';
import { filesIn } from './machine-record.ts';
import { readIfThere } from './read-if-there.ts';

/** What is used for new machines, and why nothing better. */
export interface IsolationChoice extends FoundIsolation {
  /** Set by the user rather than found best. */
  readonly isForced: boolean;
  readonly remedies: readonly string[];
}

/** What trying needs. */
export interface IsolationContext {
  readonly paths: HomePaths;
  readonly clock: Clock;
}

/** A try that takes longer hangs; a good one takes 10 to 100 ms, on a busy computer seconds. Giving up on that one would leave the process with less isolation for good. */
const tryTimeoutMs = 20_000;

/** Names that can be asked for but that this version cannot do. */
const notBuiltIn = new Set<string>(['podman', 'container']);

const choices = new Map<string, Promise<IsolationChoice>>();

/** The best isolation that works here, or the one asked for; tried once per process. SVC_ISOLATION when the one asked for does not work. */
export function chooseIsolation(context: IsolationContext, configured: LocalIsolation): Promise<IsolationChoice> {
  const wanted = envVar('SVC_LOCAL_ISOLATION') ?? configured;
  const known = choices.get(wanted);
  if (known !== undefined) return known;
  const choice = choose(context, wanted);
  choices.set(wanted, choice);
  // A refusal is final only for those who wait for it now: the user may mend what is missing.
  choice.catch(() => choices.delete(wanted));
  return choice;
}

async function choose(context: IsolationContext, wanted: string): Promise<IsolationChoice> {
  if (notBuiltIn.has(wanted)) {
    throw new SvcError(
      'SVC_ISOLATION',
      `The isolation '${wanted}' is not built into this version (there are: ${isolationKinds.join(', ')}).`,
    );
  }
  const forced = isolationKinds.find((kind) => kind === wanted);
  if (wanted !== 'auto' && forced === undefined) {
    throw new SvcError('SVC_ISOLATION', `There is no isolation called '${wanted}' (there are: auto, ${isolationKinds.join(', ')}).`);
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

/** Runs a command, and removes the folder of the try itself when whoever tried was killed meanwhile. */
const thenTidy = `
"$@"
code=$?
trier=
{ read -r stat < "/proc/$PPID/stat"; } 2>/dev/null && case \${stat##*) } in [ZX]*) ;; *) trier=alive ;; esac
[ -n "$trier" ] || rm -rf -- "$0"
exit "$code"`;

/** Really enters the isolation and runs a command there. Undefined when it ended with 0, else why not. */
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
  removeAbandonedTries(context.paths.runtimeDir);
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
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Folders of processes that were killed while they tried. */
function removeAbandonedTries(runtimeDir: string): void {
  mkdirSync(runtimeDir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(runtimeDir)) {
    const pid = /^try-([0-9a-z]+)-/.exec(name)?.[1];
    if (pid !== undefined && identifyProcess(Number.parseInt(pid, 36)) === undefined)
      rmSync(join(runtimeDir, name), { recursive: true, force: true });
  }
}

/** Whether this computer can reach any other: a route that is not over loopback. */
function hasRoute(): boolean {
  const ipv4 = readIfThere('/proc/net/route').split('\n').slice(1);
  const ipv6 = readIfThere('/proc/net/ipv6_route').split('\n');
  return ipv4.some((line) => line.trim() !== '' && !line.startsWith('lo\t')) || ipv6.some(isDefaultIpv6Route);
}

function isDefaultIpv6Route(line: string): boolean {
  return /^0{32} 00 /.test(line) && !/\slo$/.test(line);
}
