import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { MachineNode } from '../providers/provider.ts';
import { jobLogPath } from '../provision/job.ts';
import { nodeLabel } from '../provision/node-jobs.ts';
import type { Clock } from '../shared/clock.ts';
import { isObject } from '../shared/is-object.ts';
import { followLog, linkLog, untilKept, untilTaken } from './kept-log.ts';

/** The output of a job, kept here while it is written elsewhere. */
export interface JobLog {
  /** Keeps what is there by now; to be called when the job has changed. */
  refresh(): void;
  /** Settles when all that a job that has ended wrote on a node is here; never throws. */
  untilKept(rank: number): Promise<void>;
  /** Settles when keeping it has ended, after its signal aborted. */
  readonly ended: Promise<unknown>;
}

/** What keeping a log needs. */
export interface JobLogOptions {
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** Keeps the output of a job, which may have several nodes, in the file `target`, until the signal aborts. */
export function keepJobLog(
  nodes: readonly MachineNode[],
  name: string,
  target: string,
  { clock, onError }: JobLogOptions,
  signal: AbortSignal,
): JobLog {
  const [node] = nodes;
  if (nodes.length !== 1 || node === undefined) {
    const log = new NodesLog(target);
    const ended = Promise.all(nodes.map((one) => log.follow(one, jobLogPath(one.remote, name), signal).catch(onError)));
    const settle = async (one: MachineNode): Promise<void> => {
      await untilTaken(one.remote, jobLogPath(one.remote, name), () => log.sizeOf(one.rank), clock, signal);
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
  const ended = linkLog(remote, source, target) ? Promise.resolve() : followLog(remote, source, target, signal).catch(onError);
  return {
    refresh: () => void linkLog(remote, source, target),
    untilKept: () => untilKept(remote, source, target, clock, signal),
    ended,
  };
}

/** A line that is longer is put down in pieces, bytes. */
const longestLine = 65_536;

/** What is written before each line of a node. */
export const linePrefix = (node: Pick<MachineNode, 'rank' | 'ip'>): string => `(${nodeLabel(node)}) `;

/**
 * The lines of several nodes in one file, each with its node before it. How far each was read is beside it, so that a later process goes on there; one
 * that is killed in between two writes leaves at most a few lines twice.
 */
class NodesLog {
  readonly #target: string;
  /** Bytes of whole lines that are in the file, by rank. */
  readonly #taken: Map<number, number>;
  /** The begun line of each node. */
  readonly #begun = new Map<number, Buffer>();

  constructor(target: string) {
    this.#target = target;
    this.#taken = readOffsets(`${target}.read`);
  }

  /** Bytes of a node that are here, or held until their line ends. */
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

  /** Puts down a last line without an end. */
  finish(node: MachineNode): void {
    const rest = this.#begun.get(node.rank) ?? Buffer.alloc(0);
    this.#begun.delete(node.rank);
    this.#write(node, rest);
  }

  /** At once: what is put down and how far it was read must not differ when a control ends and the next one begins. */
  #write(node: MachineNode, lines: Buffer): void {
    if (lines.length === 0) return;
    // Bytes, whatever they encode, come out as they went in.
    const text = lines.toString('latin1').replace(/\n$/, '');
    const prefix = linePrefix(node);
    appendFileSync(this.#target, Buffer.from(`${prefix}${text.replaceAll('\n', `\n${prefix}`)}\n`, 'latin1'), { mode: 0o600 });
    this.#taken.set(node.rank, (this.#taken.get(node.rank) ?? 0) + lines.length);
    writeFileSync(`${this.#target}.read`, JSON.stringify(Object.fromEntries(this.#taken)), { mode: 0o600 });
  }
}

function readOffsets(path: string): Map<number, number> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (!isObject(value)) return new Map();
    return new Map(Object.entries(value).flatMap(([rank, bytes]) => (typeof bytes === 'number' ? [[Number(rank), bytes] as const] : [])));
  } catch {
    // There is none yet, or a crash left half of it: then the log begins anew.
    return new Map();
  }
}
