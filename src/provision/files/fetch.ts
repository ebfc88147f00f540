import { readFile } from 'node:fs/promises';
import type { Remote } from '../../remote/remote.ts';
import { shellCommand } from '../../remote/shell-quote.ts';
import type { ErrorCode } from '../../shared/error-codes.ts';
import { SvcError } from '../../shared/errors.ts';
import { programFile } from '../../shared/program-files.ts';

/** An object for a machine to download. */
export interface Download {
  /** Letters, digits and dashes; unique within one tree. */
  readonly name: string;
  /** Hex. Undefined: unknown, only the size is compared. */
  readonly sha256: string | undefined;
  /** Bytes; undefined: unknown. */
  readonly size: number | undefined;
  /** A fresh address, which grants access to every holder; or the path of a file that the machine has. */
  readonly address: () => Promise<string>;
}

/** A step that assembles a tree from objects; see `src/node/fetch.sh`. */
export type AssemblyStep =
  | { readonly kind: 'pack'; readonly name: string; readonly without: readonly string[] }
  /** `mtime`: s since the epoch; undefined: the time of the download. `path` empty: the file is the whole tree. */
  | { readonly kind: 'blob'; readonly name: string; readonly path: string; readonly mode: number; readonly mtime: number | undefined }
  | { readonly kind: 'folder' };

/** A tree for a machine to download. */
export interface FetchPlan {
  /** Equal for equal trees. */
  readonly id: string;
  readonly downloads: readonly Download[];
  readonly steps: readonly AssemblyStep[];
}

interface FetchTarget {
  readonly path: string;
  readonly merge: boolean;
  /** Absolute folder for partial downloads: one per target, on a disk with room for the whole tree. */
  readonly workDir: string;
}

/** Attempts, each with fresh addresses; downloaded objects are kept. */
const rounds = 3;

const codes: Readonly<Record<number, ErrorCode>> = { 3: 'SVC_HOST_UNFIT', 4: 'SVC_NO_SPACE', 5: 'SVC_BUCKET', 7: 'SVC_BUCKET' };
const downloadFailed = 5;

/**
 * Downloads a tree to a machine, four objects at a time, and resumes an earlier attempt. Throws SVC_HOST_UNFIT when the
 * machine lacks a program, SVC_NO_SPACE, or SVC_BUCKET. Addresses appear only on the script's standard input.
 */
export async function fetchTree(remote: Remote, plan: FetchPlan, target: FetchTarget, signal: AbortSignal): Promise<void> {
  const script = `${target.workDir}/fetch.sh`;
  await remote.writeFile(script, await readFile(programFile('src/node/fetch.sh'), 'utf8'));
  for (let round = 1; ; round += 1) {
    // In each round: the script removes the file at its end.
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
  // curl's configuration has the address in quotes.
  if (/["\\\n\r]/.test(where)) throw new SvcError('SVC_BUCKET', 'An address to download from has characters that no address has.');
  return `${name} ${sha256} ${size ?? '-'} ${where}\n`;
}

function stepLine(step: AssemblyStep): string {
  if (step.kind === 'folder') return 'mkdir "$stage"\n';
  if (step.kind === 'pack') return `${shellCommand(['pack', step.name, ...step.without])}\n`;
  const path = step.path === '' ? [] : [step.path];
  return `${shellCommand(['blob', step.name, step.mode.toString(8), timeStamp(step.mtime), ...path])}\n`;
}

/** Format of `touch -t`, in UTC. */
function timeStamp(seconds: number | undefined): string {
  if (seconds === undefined) return '-';
  const digits = new Date(seconds * 1_000).toISOString().replaceAll(/\D/g, '');
  return `${digits.slice(0, 12)}.${digits.slice(12, 14)}`;
}
