import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { waitFor } from '../../test/support/wait-for.ts';

const running = new Set<ChildProcess>();

// No started program outlives the benchmark.
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

/** A started program; the end of the benchmark ends it too. */
export interface Program {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Standard output and error so far. */
  readonly output: () => string;
  /** Resolves with the exit code, or null after a signal. */
  readonly exited: Promise<number | null>;
  /** Ends the program, with SIGTERM by default: nginx leaves its workers behind after SIGKILL. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>;
}

/** Starts a program without a shell. */
export function startProgram(command: string, args: readonly string[], stdin: 'ignore' | 'pipe' = 'ignore'): Program {
  const stdio: StdioOptions = [stdin, 'pipe', 'pipe'];
  const child = spawn(command, args, { stdio });
  running.add(child);
  let text = '';
  const collect = (bytes: Buffer): void => {
    text += bytes.toString();
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    child.kill(signal);
    await exited;
  };
  return { pid: child.pid ?? 0, child, output: () => text, exited, stop };
}

/** Runs a program to its end. Rejects with its output when it fails. */
export async function runProgram(command: string, args: readonly string[]): Promise<string> {
  const program = startProgram(command, args);
  const code = await program.exited;
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${program.output()}`);
  return program.output();
}

/** Returns ports of the loopback interface that are free now. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(servers.map((server) => portOf(server)));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function portOf(server: ReturnType<typeof createServer>): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(address !== null && typeof address === 'object' ? address.port : 0);
    });
  });
}

/** Waits until a process listens on the port. */
export async function untilListening(port: number, program: Program): Promise<void> {
  await waitFor(`a listener on port ${port}`, () => isListening(port), { everyMs: 20, timeoutMs: 10_000, describe: program.output });
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
