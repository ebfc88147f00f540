import type { ExecResult } from '../remote.ts';
import type { SessionMachine, SessionRequest } from './session-machine.ts';

const maxOutputBytes = 1_048_576;

/** The exit code of timeout(1). */
const timedOutExitCode = 124;

interface CapturedRequest {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  readonly input?: SessionRequest['input'] | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly isRepeatable?: boolean;
  /** Of each output; default: 1 MiB. */
  readonly maxBytes?: number;
  readonly lane?: 'command' | 'copy';
}

/** `bytes`: standard output. */
interface CapturedResult extends ExecResult {
  readonly bytes: Buffer;
}

/** Runs a command on the machine and collects its outputs. */
export async function runCaptured(machine: SessionMachine, request: CapturedRequest): Promise<CapturedResult> {
  const {
    argv,
    env = {},
    cwd,
    input = Buffer.alloc(0),
    timeoutMs,
    signal,
    isRepeatable = false,
    maxBytes = maxOutputBytes,
    lane = 'command',
  } = request;
  const stdout = collector(maxBytes);
  const stderr = collector(maxBytes);
  const started = (): void => {
    // A repeated request produces its output from the start.
    stdout.clear();
    stderr.clear();
  };
  started();
  const end = await machine.session(
    { argv, env, cwd, input, timeoutMs, signal, onStdout: stdout.add, onStderr: stderr.add, onStart: started },
    { lane, isRepeatable },
  );
  const bytes = stdout.bytes();
  return { exitCode: end.exitCode ?? timedOutExitCode, stdout: bytes.toString('utf8'), stderr: stderr.bytes().toString('utf8'), bytes };
}

function collector(maxBytes: number): { readonly add: (chunk: Buffer) => void; readonly clear: () => void; readonly bytes: () => Buffer } {
  let chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk) {
      if (size >= maxBytes) return;
      chunks.push(chunk.subarray(0, maxBytes - size));
      size += chunk.length;
    },
    clear() {
      chunks = [];
      size = 0;
    },
    bytes: () => Buffer.concat(chunks),
  };
}
