import { Readable, Writable } from 'node:stream';
import { vi } from 'vitest';
import type { ApiClient } from '../../src/api/client.ts';
import type { Connection, RemoteController } from '../../src/cli/connection/controller-connection.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import type { Clock } from '../../src/shared/clock.ts';
import { homePaths } from '../../src/shared/paths.ts';
import type { Providers } from '../../src/provision/providers.ts';
import { anOffer } from './builders.ts';
import { providersOf } from './providers.ts';
import { aStubProvider } from './stub-provider.ts';
import { FakeClock } from './fake-clock.ts';
import { fakeClient, type FakeRoutes, type RecordedCall } from './fake-client.ts';

const ownMachine = aStubProvider({
  name: 'local',
  offers: async () => ({ offers: [anOffer({ provider: 'local', region: 'local', hourlyUsd: 0 })], whyNone: undefined }),
});

/** A stream that keeps all written text. */
export class Screen extends Writable {
  text = '';
  readonly isTTY: boolean;
  readonly columns: number;
  readonly rows = 24;

  constructor(isTTY: boolean, columns: number) {
    super();
    this.isTTY = isTTY;
    this.columns = columns;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** Options of a run of the command line. */
export interface CliOptions {
  /** Responses of the local controller. Without them no controller runs or has ever run. */
  readonly routes?: FakeRoutes;
  /** Responses of the remote controller; without them there is none. */
  readonly remoteController?: RemoteController;
  /** The providers; default: this machine alone, which costs nothing. */
  readonly providers?: Providers;
  /** Whether all three streams are on a terminal. */
  readonly tty?: boolean;
  readonly width?: number;
  /** Terminal input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** An existing folder, for commands that read from SVC_HOME. */
  readonly home?: string;
  readonly clock?: Clock;
  /** Aborted by the test to simulate Ctrl-C. */
  readonly interrupt?: AbortController;
}

/** The result of a command, and its calls of the controller. */
export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly calls: readonly RecordedCall[];
}

/** Runs the command line in this process, against fakes. Colours are off unless `env` enables them. */
export async function runInProcess(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const { routes, tty = false, width = 80, clock = new FakeClock(), interrupt = new AbortController() } = options;
  const env: Readonly<Record<string, string>> = { NO_COLOR: '1', ...options.env };
  const [stdout, stderr] = [new Screen(tty, width), new Screen(tty, width)];
  const calls: RecordedCall[] = [];
  const api = routes === undefined ? undefined : fakeClient(routes, calls);
  const code = await runCli(argv, {
    streams: { stdin: keyboard(options.input, tty), stdout, stderr },
    clock,
    env: (name) => (env[name] === '' ? undefined : env[name]),
    cwd: options.cwd ?? '/project',
    paths: homePaths(options.home ?? '/home/ann/.svc', 1000),
    version: '1.2.3',
    connection: fakeConnection(api, options.remoteController),
    providers: async () => options.providers ?? providersOf(ownMachine),
    signal: interrupt.signal,
  });
  return { code, stdout: stdout.text, stderr: stderr.text, calls };
}

/**
 * The same for a command that waits: virtual time passes until it ends. Time stands still while the command loads a
 * module, because loading takes real time and hours of virtual time would pass meanwhile.
 */
export async function runWithTime(argv: readonly string[], options: Omit<CliOptions, 'clock'> = {}): Promise<CliResult> {
  const clock = new FakeClock();
  let isOver = false;
  const running = runInProcess(argv, { ...options, clock }).finally(() => (isOver = true));
  const over = (): boolean => isOver;
  while (!over()) {
    await vi.dynamicImportSettled();
    await clock.advance(100);
  }
  return running;
}

/** A terminal's input stays open after the typed text. */
function keyboard(input: string | undefined, isTTY: boolean): Readable & { readonly isTTY: boolean } {
  const stream = new Readable({ read: () => undefined });
  if (input !== undefined) stream.push(input);
  if (!isTTY) stream.push(null);
  return Object.assign(stream, { isTTY, setRawMode: () => stream });
}

function fakeConnection(api: ApiClient | undefined, remoteController: RemoteController | undefined): Connection {
  return {
    async client() {
      if (api === undefined) throw new Error('the test expects no controller to be started');
      return api;
    },
    existing: async () => api,
    running: async () => api,
    bring: async (task, source, onStep = () => undefined) => remoteController?.bring(task, source, onStep),
    preflight: async () => remoteController?.preflight(),
    plan: async (near) => remoteController?.plan(near),
    remoteController: async () => remoteController,
  };
}
