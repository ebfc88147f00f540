import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { startProgram, type Program } from './processes.ts';

/** Runs a program of this folder that answers each line on its standard input with one line. */
export class AskedProgram {
  readonly #program: Program;
  readonly #lines: AsyncIterator<string>;

  private constructor(program: Program, lines: AsyncIterator<string>) {
    this.#program = program;
    this.#lines = lines;
  }

  static start(file: string, args: readonly number[]): AskedProgram {
    const program = startProgram(process.execPath, [join(import.meta.dirname, file), ...args.map(String)], 'pipe');
    const { stdout } = program.child;
    if (stdout === null) throw new Error(`${file} has no standard output`);
    return new AskedProgram(program, createInterface({ input: stdout })[Symbol.asyncIterator]());
  }

  /** Returns the next line of the program, parsed as JSON. */
  async read(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error(`A program of the benchmark ended: ${this.#program.output()}`);
    return JSON.parse(value);
  }

  async ask(): Promise<unknown> {
    this.#program.child.stdin?.write('\n');
    return this.read();
  }

  stop(): Promise<void> {
    return this.#program.stop('SIGKILL');
  }
}
