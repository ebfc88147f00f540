import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Behaviour, JournalEntry, ReplicaCommand, ReplicaStatus } from './behaviour.ts';

/** A replica in a separate process. A test can change its behaviour while it runs, and kill it. */
export class FaultyReplica {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #dir: string;

  private constructor(child: ChildProcess, dir: string, port: number) {
    this.#child = child;
    this.#dir = dir;
    this.port = port;
  }

  /** Starts one; resolves when it listens (or refuses). */
  static async start(behaviour: Behaviour): Promise<FaultyReplica> {
    const dir = mkdtempSync(join(tmpdir(), 'svc-t-'));
    const args = [join(import.meta.dirname, 'program.ts'), join(dir, 'journal'), JSON.stringify(behaviour)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const { port } = await statusOf(child);
    return new FaultyReplica(child, dir, port);
  }

  /** Sets the behaviour for requests read from now on; resolves when it is in effect. */
  async become(behaviour: Behaviour): Promise<void> {
    await this.#send({ type: 'become', behaviour });
  }

  async status(): Promise<ReplicaStatus> {
    return this.#send({ type: 'ask' });
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  /** Its complete record of requests; also available after its death. */
  journal(): readonly JournalEntry[] {
    const lines = readFileSync(join(this.#dir, 'journal'), 'utf8').split('\n').slice(0, -1);
    return lines.map(readEntry);
  }

  /** Kills it and removes its files. */
  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #send(command: ReplicaCommand): Promise<ReplicaStatus> {
    const status = statusOf(this.#child);
    this.#child.send(command);
    return status;
  }
}

/** Returns the next message of the process. */
function statusOf(child: ChildProcess): Promise<ReplicaStatus> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('the replica ended instead of answering'));
    child.once('exit', onExit);
    child.once('message', (message: unknown) => {
      child.off('exit', onExit);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- said by the program beside this file
      resolve(message as ReplicaStatus);
    });
  });
}

function readEntry(line: string): JournalEntry {
  const [what = '', id = '', method = '', at = ''] = line.split(' ');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by the program beside this file
  return { what: what as JournalEntry['what'], id, method, at: Number(at) };
}

/** Runs `use` with replicas, and always kills them afterwards. */
export async function withFaultyReplicas(
  behaviours: readonly Behaviour[],
  use: (replicas: readonly FaultyReplica[]) => Promise<void>,
): Promise<void> {
  const started = await Promise.allSettled(behaviours.map((behaviour) => FaultyReplica.start(behaviour)));
  const replicas = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  try {
    const failed = started.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    await use(replicas);
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()));
  }
}
