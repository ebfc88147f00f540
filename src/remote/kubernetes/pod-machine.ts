import type { KubeApi, PodProcess, PodRef } from '../../kubernetes/kube-api.ts';
import { kubeStatusOf } from '../../kubernetes/kube-errors.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { runSession, type SessionCarrier } from '../session/run-session.ts';
import { Semaphore } from '../session/semaphore.ts';
import type { SessionEnd, SessionMachine, SessionOptions, SessionRequest } from '../session/session-machine.ts';
import { bootCommand, repeatingBootCommand } from '../session/session-script.ts';
import { KeptShell, textRequest } from './kept-shell.ts';
import { KeptShells } from './kept-shells.ts';
import { spooled } from './spool.ts';

/** Commands of this process in one pod at a time, and copies to it; what streams is not counted. */
const commandsAtOnce = 5;
const copiesAtOnce = 2;

/** Sessions of this process that are being opened at a time, of all pods of a cluster: hundreds of replicas may be adopted at one moment. */
const openingsAtOnce = 16;

/** How often an API server that does not answer, or is busy, is asked for a session, and the pause before each time but the first, ms. */
const openPausesMs = [0, 250, 1_000];

/**
 * What container runtimes say of a shell that is not there. They have an exit code for it at best, which others have for other things; and files of
 * their own are missing for a moment while a container begins or ends.
 */
const noShell = /\/bin\/sh\b.*(?:not found|no such file or directory)/i;

/** What a machine in a pod is made from. */
export interface PodMachineSettings {
  readonly api: () => Promise<KubeApi>;
  readonly context: string;
  readonly pod: PodRef;
  /** Folder here for what has to be written down before its length is known. */
  readonly spoolDir: string;
  readonly clock: Clock;
}

/** A pod as a machine on which commands are run by `exec`. */
export class PodMachine implements SessionMachine {
  readonly name: string;
  readonly host: string;
  readonly #settings: PodMachineSettings;
  readonly #places = { command: new Semaphore(commandsAtOnce), copy: new Semaphore(copiesAtOnce) };
  readonly #openings: Semaphore;
  readonly #shells: KeptShells;

  constructor(settings: PodMachineSettings) {
    const { context, pod, clock } = settings;
    this.name = `the pod ${pod.namespace}/${pod.name}`;
    this.host = `${this.name} of ${context}`;
    this.#settings = settings;
    this.#openings = openingsOf(context);
    this.#shells = new KeptShells(async (signal) => new KeptShell(await this.#exec(repeatingBootCommand, signal), clock), clock);
  }

  async session(request: SessionRequest, options: SessionOptions): Promise<SessionEnd> {
    const { lane } = options;
    return this.#checked(
      lane === 'stream' ? await this.#runOnce(request) : await this.#places[lane].run(() => this.#run(request, options), request.signal),
    );
  }

  lost(what: string): SvcError {
    return new SvcError('SVC_KUBERNETES', `The connection to ${this.name} ${what}.`, {
      hint: `See how it is doing: kubectl --context ${this.#settings.context} -n ${this.#settings.pod.namespace} describe pod ${this.#settings.pod.name}`,
    });
  }

  /** Ends what is kept open. */
  close(): void {
    this.#shells.close();
  }

  async #run(request: SessionRequest, { isRepeatable }: SessionOptions): Promise<SessionEnd> {
    const short = isRepeatable ? textRequest(request) : undefined;
    if (short !== undefined) return this.#shells.run(short);
    const { input, close } = await spooled(request.input, this.#settings.spoolDir);
    try {
      const end = await this.#runOnce({ ...request, input });
      const mayRepeat = isRepeatable && end.how === 'lost' && (Buffer.isBuffer(input) || input === 'detached');
      return mayRepeat ? await this.#runOnce({ ...request, input }) : end;
    } finally {
      await close();
    }
  }

  #runOnce(request: SessionRequest): Promise<SessionEnd> {
    const open = async (): Promise<SessionCarrier> => carrierOf(await this.#exec(['/bin/sh', '-c', bootCommand], request.signal));
    return runSession(open, request, this.#settings.clock);
  }

  /** An end of which the command's own is known. */
  #checked(end: SessionEnd): SessionEnd {
    const { how, isStarted, said } = end;
    if (how === 'ended' || (how === 'timed-out' && isStarted)) return end;
    if (!isStarted && noShell.test(said))
      throw new SvcError('SVC_HOST_UNFIT', `The image of ${this.name} has no /bin/sh.`, {
        hint: 'Use an image with a shell, setsid and tar.',
      });
    if (how === 'silent') throw this.lost('is silent');
    throw this.lost(`${isStarted ? 'broke while a command ran' : 'broke'}${said.trim() === '' ? '' : `: ${said.trim()}`}`);
  }

  /** Opening one twice is harmless: it only waits for what it is to do. */
  async #exec(command: readonly string[], signal: AbortSignal | undefined): Promise<PodProcess> {
    const { api, pod, clock } = this.#settings;
    let failure: unknown;
    for (const pauseMs of openPausesMs) {
      if (pauseMs > 0) await clock.sleep(pauseMs, signal);
      signal?.throwIfAborted();
      try {
        return await this.#openings.run(async () => (await api()).exec(pod, command, { stdin: true, signal }), signal);
      } catch (error) {
        if (!mayPass(error)) throw error;
        failure = error;
      }
    }
    throw failure;
  }
}

/** Whether the same may be answered otherwise in a moment: not when the API server itself says that there is no such pod, or nothing to do there. */
function mayPass(error: unknown): boolean {
  const code = kubeStatusOf(error)?.code ?? 500;
  return error instanceof SvcError && error.kind === 'transient' && (code >= 500 || code === 429);
}

function carrierOf(command: PodProcess): SessionCarrier {
  return {
    stdin: command.stdio,
    stdout: command.stdio,
    stderr: command.stderr,
    closed: command.ended.then(({ message }) => message ?? ''),
    kill: () => command.close(),
  };
}

const openings = new Map<string, Semaphore>();

function openingsOf(context: string): Semaphore {
  const known = openings.get(context) ?? new Semaphore(openingsAtOnce);
  openings.set(context, known);
  return known;
}
