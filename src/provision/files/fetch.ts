import { readFile } from 'node:fs/promises';
import type { Remote } from '../../remote/remote.ts';
import { shellCommand } from '../../remote/shell-quote.ts';
import type { ErrorCode } from '../../shared/error-codes.ts';
import { SvcError } from '../../shared/errors.ts';
import { programFile } from '../../shared/program-files.ts';

/** An object that a machine is to download. */
export interface Download {
  /** Tells it from the others of one tree: letters, digits and dashes. */
  readonly name: string;
  /** Hex; undefined where it is not known: then the size alone is compared. */
  readonly sha256: string | undefined;
  /** Bytes; undefined where it is not known. */
  readonly size: number | undefined;
  /** A fresh address, made when it is needed: it opens the object for whoever has it. A path of the machine for a file that is there already. */
  readonly address: () => Promise<string>;
}

/** One step of putting a tree together from objects; see `src/node/fetch.sh`. */
export type AssemblyStep =
  | { readonly kind: 'pack'; readonly name: string; readonly without: readonly string[] }
  /** `mtime` is seconds since the epoch; undefined leaves the time of the download. An empty `path` makes the file the whole tree. */
  | { readonly kind: 'blob'; readonly name: string; readonly path: string; readonly mode: number; readonly mtime: number | undefined }
  | { readonly kind: 'folder' };

/** A tree that a machine is to fetch. */
export interface FetchPlan {
  /** Equal for equal trees. */
  readonly id: string;
  readonly downloads: readonly Download[];
  readonly steps: readonly AssemblyStep[];
}

/** Where a tree goes on its machine. */
export interface FetchTarget {
  /** Absolute */
  readonly path: string;
  /** What is there besides stays. */
  readonly merge: boolean;
  /** Absolute folder for what is under way; one for each target, on a disk with room for all of the tree. */
  readonly workDir: string;
}

/** So often a fetch is begun anew when downloads failed, each time with fresh addresses; what has arrived stays. */
const rounds = 3;

/** Exit codes of the script. */
const codes: Readonly<Record<number, ErrorCode>> = { 3: 'SVC_HOST_UNFIT', 4: 'SVC_NO_SPACE', 5: 'SVC_BUCKET', 7: 'SVC_BUCKET' };
const downloadFailed = 5;

/**
 * Makes a machine fetch a tree by itself: four objects at a time, going on where an earlier attempt stopped. Throws SVC_HOST_UNFIT when it lacks a
 * program, SVC_NO_SPACE, or SVC_BUCKET. Addresses are only ever in the script's standard input.
 */
export async function fetchTree(remote: Remote, plan: FetchPlan, target: FetchTarget, signal: AbortSignal): Promise<void> {
  const script = `${target.workDir}/fetch.sh`;
  await remote.writeFile(script, await readFile(programFile('src/node/fetch.sh'), 'utf8'));
  for (let round = 1; ; round += 1) {
    // Each round, as the script removes it when it is done.
    await remote.writeFile(`${target.workDir}/assemble`, plan.steps.map(stepLine).join(''));
    const lines: string[] = [];
    for (const download of plan.downloads) lines.push(await downloadLine(download));
    const argv = ['sh', script, target.workDir, target.path, target.merge ? 'merge' : 'replace', plan.id];
    const { exitCode, stderr } = await remote.exec(argv, { input: lines.join(''), signal });
    if (exitCode === 0) return;
    if (exitCode === downloadFailed && round < rounds) continue;
    const reason = stderr.trim().split('\n').at(-1) ?? '';
    throw new SvcError(
      codes[exitCode] ?? 'SVC_PLACE_FAILED',
      `Files could not be fetched to ${target.path}: ${reason || `exit code ${exitCode}`}`,
    );
  }
}

async function downloadLine({ name, sha256 = '-', size, address }: Download): Promise<string> {
  const where = await address();
  // It stands between quotes in a line of curl's settings.
  if (/["\\\n\r]/.test(where)) throw new SvcError('SVC_BUCKET', 'An address to download from has characters that no address has.');
  return `${name} ${sha256} ${size ?? '-'} ${where}\n`;
}

function stepLine(step: AssemblyStep): string {
  if (step.kind === 'folder') return 'mkdir "$stage"\n';
  if (step.kind === 'pack') return `${shellCommand(['pack', step.name, ...step.without])}\n`;
  const path = step.path === '' ? [] : [step.path];
  return `${shellCommand(['blob', step.name, step.mode.toString(8), timeStamp(step.mtime), ...path])}\n`;
}

/** As `touch -t` takes it, in UTC. */
function timeStamp(seconds: number | undefined): string {
  if (seconds === undefined) return '-';
  const digits = new Date(seconds * 1_000).toISOString().replaceAll(/\D/g, '');
  return `${digits.slice(0, 12)}.${digits.slice(12, 14)}`;
}
