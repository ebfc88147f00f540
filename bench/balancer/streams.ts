import { waitFor } from '../../test/support/wait-for.ts';
import { AskedProgram } from './asked-program.ts';
import type { StreamCounts } from './stream-client.ts';

/** The size of the streams. */
export interface StreamShape {
  /** Concurrent streams. */
  readonly streams: number;
  /** Events per stream. */
  readonly events: number;
  readonly gapMs: number;
}

/** Replicas that send event streams, in one process: sending costs little compared with relaying. */
export class StreamReplicas {
  readonly ports: readonly number[];
  readonly #program: AskedProgram;

  private constructor(program: AskedProgram, ports: readonly number[]) {
    this.#program = program;
    this.ports = ports;
  }

  /** `tickMs`: the interval between checks for due events. */
  static async start(tickMs: number): Promise<StreamReplicas> {
    const program = AskedProgram.start('stream-replica.ts', [tickMs]);
    const ports = await program.read();
    if (!Array.isArray(ports)) throw new Error('The stream replicas did not start');
    return new StreamReplicas(program, ports.map(Number));
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }
}

/** A client that holds event streams open. */
export class StreamClient {
  readonly #program: AskedProgram;

  private constructor(program: AskedProgram) {
    this.#program = program;
  }

  /** Resolves when all streams are open. */
  static async start(port: number, { streams, events, gapMs }: StreamShape): Promise<StreamClient> {
    const client = new StreamClient(AskedProgram.start('stream-client.ts', [port, streams, events, gapMs]));
    try {
      await waitFor(`${streams} open streams`, async () => (await client.counts()).open === streams, {
        everyMs: 100,
        timeoutMs: 60_000,
        describe: () => client.counts(),
      });
    } catch (error) {
      await client.stop();
      throw error;
    }
    return client;
  }

  /** Returns the counts so far. Rejects when a stream broke, because the run is then invalid. */
  async counts(): Promise<StreamCounts> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the program beside this file writes it
    const counts = (await this.#program.ask()) as StreamCounts;
    if (counts.failed > 0) throw new Error(`${counts.failed} streams broke; the first got: ${counts.failure}`);
    return counts;
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }
}
