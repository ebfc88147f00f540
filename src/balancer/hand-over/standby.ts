import { spawn, type ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { programEntry } from '../../shared/program-files.ts';

/**
 * Waits for the end of its standard input, which the balancer holds open, and becomes the next balancer. A balancer that
 * dies within the second gets its successor a second later: without a controller, no other process limits a crash loop.
 */
const script = `
started=$(date +%s)
read -r _
[ "$(date +%s)" -gt "$started" ] || sleep 1
exec "$@" </dev/null`;

/** Delay before a killed standby is replaced, ms: the killer may be about to kill the balancer too. */
const replaceMs = 1_000;

interface StandbyDeps {
  /** The next balancer reads the config from this path. */
  readonly configPath: string;
  /** Listening sockets, by their numbers in this process. */
  readonly fds: () => readonly number[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onStart: (pid: number) => void;
}

/**
 * The process that follows this one if it is killed: a shell of 1 MB that holds the listening sockets. The kernel queues
 * connections in them until the shell, with the same pid, has become the next balancer. It needs no controller.
 */
export class Standby {
  readonly #deps: StandbyDeps;
  #child: ChildProcess | undefined;
  #cancelReplacement: CancelTimer = () => undefined;

  constructor(deps: StandbyDeps) {
    this.#deps = deps;
  }

  /** Undefined while there is none. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it. A former one ends, because its sockets may be those of a dead thread: no thread would accept there. */
  start(): void {
    this.end();
    const { configPath, fds, clock, logger, onStart } = this.#deps;
    const sockets = fds();
    if (sockets.length === 0) return;
    const next = [process.execPath, ...process.execArgv, programEntry('balancer/main'), configPath, String(sockets.length), '0'];
    const child = spawn('sh', ['-c', script, 'standby', ...next], { stdio: ['pipe', 'inherit', 'inherit', ...sockets] });
    const replace = (why: unknown): void => {
      if (child !== this.#child) return;
      logger.warn({ why }, 'The standby process ended; another one is started');
      this.#child = undefined;
      this.#cancelReplacement = clock.after(replaceMs, () => this.start());
    };
    child.once('error', replace);
    child.once('exit', (code, signal) => replace(signal ?? code));
    child.stdin?.on('error', () => undefined);
    // This process ends as if there were no standby.
    child.unref();
    if (child.stdin instanceof Socket) child.stdin.unref();
    this.#child = child;
    if (child.pid !== undefined) onStart(child.pid);
  }

  /** Ends it: this process is about to end as intended, or another one has the sockets. */
  end(): void {
    this.#cancelReplacement();
    const child = this.#child;
    this.#child = undefined;
    child?.kill('SIGKILL');
  }
}
