import { Readable, Writable } from 'node:stream';
import { vi } from 'vitest';
import type { ApiClient } from '../../src/api/client.ts';
import type { Connection } from '../../src/cli/connection.ts';
import type { Elsewhere } from '../../src/cli/elsewhere-connection.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import type { Clock } from '../../src/shared/clock.ts';
import { homePaths } from '../../src/shared/paths.ts';
import type { Places } from '../../src/provision/places.ts';
import { anOffer } from './builders.ts';
import { placesOf } from './places.ts';
import { aStubPlace } from './stub-place.ts';
import { FakeClock } from './fake-clock.ts';
import { fakeClient, type FakeRoutes, type RecordedCall } from './fake-client.ts';

const ownMachine = aStubPlace({
  name: 'local',
  offers: async () => ({ offers: [anOffer({ provider: 'local', region: 'local', hourlyUsd: 0 })], whyNone: undefined }),
});

/** A stream that keeps what is written to it. */
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

/** How the command line is run. */
export interface CliOptions {
  /** The controller's answers; without any, no controller runs and none has. */
  readonly routes?: FakeRoutes;
  /** The controller on another machine; without it there is none. */
  readonly elsewhere?: Elsewhere;
  /** The places; without any, this machine alone, which costs nothing. */
  readonly places?: Places;
  /** Whether all three streams are on a terminal. */
  readonly tty?: boolean;
  readonly width?: number;
  /** Typed by a person. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** A folder that is there, for commands that read from SVC_HOME. */
  readonly home?: string;
  readonly clock?: Clock;
  /** Aborted by the test for Ctrl-C. */
  readonly interrupt?: AbortController;
}

/** How a command ended, and what it asked of the controller. */
export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly calls: readonly RecordedCall[];
}

/** Runs the command line in this process, against fakes. On a terminal without colours unless `env` asks for them. */
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
    connection: fakeConnection(api, options.elsewhere),
    places: async () => options.places ?? placesOf(ownMachine),
    signal: interrupt.signal,
  });
  return { code, stdout: stdout.text, stderr: stderr.text, calls };
}

/**
 * The same for a command that waits: time passes until it is over. Not while it loads a module, which takes real time, on a busy machine a lot: by the
 * time it has come hours could have passed.
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

/** A terminal's input does not end with what was typed. */
function keyboard(input: string | undefined, isTTY: boolean): Readable & { readonly isTTY: boolean } {
  const stream = new Readable({ read: () => undefined });
  if (input !== undefined) stream.push(input);
  if (!isTTY) stream.push(null);
  return Object.assign(stream, { isTTY, setRawMode: () => stream });
}

function fakeConnection(api: ApiClient | undefined, elsewhere: Elsewhere | undefined): Connection {
  return {
    async client() {
      if (api === undefined) throw new Error('the test expects no controller to be started');
      return api;
    },
    existing: async () => api,
    running: async () => api,
    bring: async (task, source, onStep = () => undefined) => elsewhere?.bring(task, source, onStep),
    checkWish: async () => elsewhere?.checkWish(),
    plan: async (near) => elsewhere?.plan(near),
    elsewhere: async () => elsewhere,
  };
}
