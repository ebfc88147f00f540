import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { MachineNode } from '../providers/provider.ts';
import { jobLogPath } from '../provision/job.ts';
import { nodeLabel } from '../provision/node-jobs.ts';
import type { Clock } from '../shared/clock.ts';
import { hasErrno } from '../shared/errors.ts';
import { isObject } from '../shared/json.ts';
import { boundLog, followLog, linkLog, untilKept, untilCopied } from './kept-log.ts';

/** A local copy of a job's output, kept while the job writes it on another machine. */
export interface JobLog {
  /** Copies the output that exists now. Call it when the job's state has changed. */
  refresh(): void;
  /** Settles when the complete output of an ended job on one node is copied. Never throws. */
  untilKept(rank: number): Promise<void>;
  /** Settles when copying has ended, after its signal aborted. */
  readonly ended: Promise<unknown>;
}

interface JobLogOptions {
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** Copies the output of a job, from one node or several, to the file `target` until the signal aborts. */
export function keepJobLog(
  nodes: readonly MachineNode[],
  name: string,
  target: string,
  { clock, onError }: JobLogOptions,
  signal: AbortSignal,
): JobLog {
  const [node] = nodes;
  if (nodes.length !== 1 || node === undefined) {
    const log = new NodesLog(target, clock);
    const ended = Promise.all(nodes.map((one) => log.follow(one, jobLogPath(one.remote, name), signal).catch(onError)));
    const settle = async (one: MachineNode): Promise<void> => {
      await untilCopied(one.remote, jobLogPath(one.remote, name), () => log.sizeOf(one.rank), clock, signal);
      log.finish(one);
    };
    return {
      refresh: () => undefined,
      untilKept: async (rank) => void (await Promise.all(nodes.filter((one) => one.rank === rank).map(settle))),
      ended,
    };
  }
  const { remote } = node;
  const source = jobLogPath(remote, name);
  const ended = linkLog(remote, source, target) ? Promise.resolve() : followLog(remote, source, target, clock, signal).catch(onError);
  return {
    refresh: () => void linkLog(remote, source, target),
    untilKept: () => untilKept(remote, source, target, clock, signal),
    ended,
  };
}

/** Longer lines are written in pieces, bytes. */
const longestLine = 65_536;

/** Prefix of each line of a node. */
export const linePrefix = (node: Pick<MachineNode, 'rank' | 'ip'>): string => `(${nodeLabel(node)}) `;

/**
 * Merges the lines of several nodes into one file, each prefixed with its node. A later process continues from the read
 * offsets stored beside it. A process killed between the two writes duplicates at most a few lines.
 */
class NodesLog {
  readonly #target: string;
  readonly #clock: Clock;
  /** Bytes of whole lines already in the file, by rank. */
  readonly #taken: Map<number, number>;
  /** The incomplete last line of each node. */
  readonly #begun = new Map<number, Buffer>();

  constructor(target: string, clock: Clock) {
    this.#target = target;
    this.#clock = clock;
    this.#taken = readOffsets(`${target}.read`);
  }

  /** Bytes of a node that are copied, or held until their line ends. */
  sizeOf(rank: number): number {
    return (this.#taken.get(rank) ?? 0) + (this.#begun.get(rank)?.length ?? 0);
  }

  async follow(node: MachineNode, source: string, signal: AbortSignal): Promise<void> {
    mkdirSync(dirname(this.#target), { recursive: true, mode: 0o700 });
    for await (const chunk of node.remote.follow(source, this.#taken.get(node.rank) ?? 0, signal)) {
      const all = Buffer.concat([this.#begun.get(node.rank) ?? Buffer.alloc(0), chunk]);
      const end = all.lastIndexOf('\n') + 1;
      const cut = end === 0 && all.length >= longestLine ? all.length : end;
      this.#begun.set(node.rank, all.subarray(cut));
      this.#write(node, all.subarray(0, cut));
    }
  }

  /** Writes a last line that has no line end. */
  finish(node: MachineNode): void {
    const rest = this.#begun.get(node.rank) ?? Buffer.alloc(0);
    this.#begun.delete(node.rank);
    this.#write(node, rest);
  }

  /** Synchronous: lines and read offsets must agree when one controller ends and the next one starts. */
  #write(node: MachineNode, lines: Buffer): void {
    if (lines.length === 0) return;
    // latin1 keeps the bytes unchanged, whatever their encoding.
    const text = lines.toString('latin1').replace(/\n$/, '');
    const prefix = linePrefix(node);
    this.#taken.set(node.rank, (this.#taken.get(node.rank) ?? 0) + lines.length);
    try {
      appendFileSync(this.#target, Buffer.from(`${prefix}${text.replaceAll('\n', `\n${prefix}`)}\n`, 'latin1'), { mode: 0o600 });
      // Atomically: on a full disk, writing in place would truncate the offsets, and the log would start again.
      writeFileSync(`${this.#target}.read.new`, JSON.stringify(Object.fromEntries(this.#taken)), { mode: 0o600 });
      renameSync(`${this.#target}.read.new`, `${this.#target}.read`);
    } catch (error) {
      // These lines are lost. Later ones are kept once there is space.
      if (!hasErrno(error, 'ENOSPC', 'EDQUOT')) throw error;
    }
    void boundLog(this.#target, this.#clock).catch(() => undefined);
  }
}

function readOffsets(path: string): Map<number, number> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (!isObject(value)) return new Map();
    return new Map(Object.entries(value).flatMap(([rank, bytes]) => (typeof bytes === 'number' ? [[Number(rank), bytes] as const] : [])));
  } catch {
    // No offsets yet, or a crash left half of them. The log starts again from the beginning.
    return new Map();
  }
}
