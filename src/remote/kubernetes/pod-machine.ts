import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { KubeApi, PodProcess, PodRef } from '../../kubernetes/kube-api.ts';
import { kubeStatusOf } from '../../kubernetes/kube-errors.ts';
import { type Backoff, delayMs } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { type SessionCarrier, runSession } from '../session/run-session.ts';
import { Semaphore } from '../session/semaphore.ts';
import type { SessionEnd, SessionMachine, SessionOptions, SessionRequest, SizedInput } from '../session/session-machine.ts';
import { bootCommand, repeatingBootCommand } from '../session/session-script.ts';
import { KeptShell, KeptShells, textRequest } from './kept-shells.ts';
import { randomHex } from '../../shared/hex.ts';

/** This process's concurrent commands in one pod, and copies to it. Streams do not count. */
const commandsAtOnce = 5;
const copiesAtOnce = 2;

/** Per process and Kubernetes cluster: a process may adopt hundreds of replicas at one moment. */
const openingsAtOnce = 16;

/** For opening a session while the API server is busy or does not answer. */
const openAttempts = 3;
const openBackoff: Backoff = { firstMs: 400, longestMs: 1_000 };

/**
 * Messages of container runtimes for a missing shell; other failures have the same exit codes. While a container starts
 * or ends, the runtime's own files are missing, so only a message that names /bin/sh counts.
 */
const noShell = /\/bin\/sh\b.*(?:not found|no such file or directory)/i;

interface PodMachineSettings {
  readonly api: () => Promise<KubeApi>;
  readonly context: string;
  readonly pod: PodRef;
  readonly spoolDir: string;
  readonly clock: Clock;
}

/** A pod as a machine: each command is an `exec`. */
export class PodMachine implements SessionMachine {
  readonly name: string;
  readonly host: string;
  readonly #settings: PodMachineSettings;
  readonly #slots = { command: new Semaphore(commandsAtOnce), copy: new Semaphore(copiesAtOnce) };
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
      lane === 'stream' ? await this.#runOnce(request) : await this.#slots[lane].run(() => this.#run(request, options), request.signal),
    );
  }

  lost(what: string): SvcError {
    return new SvcError('SVC_KUBERNETES', `The connection to ${this.name} ${what}.`, {
      hint: `See how it is doing: kubectl --context ${this.#settings.context} -n ${this.#settings.pod.namespace} describe pod ${this.#settings.pod.name}`,
    });
  }

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
    const openCarrier = async (): Promise<SessionCarrier> => carrierOf(await this.#exec(['/bin/sh', '-c', bootCommand], request.signal));
    return runSession(openCarrier, request, this.#settings.clock);
  }

  /** Throws unless the command's own result is known. */
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

  /** Retries are safe: a second session only waits for its script. */
  async #exec(command: readonly string[], signal: AbortSignal | undefined): Promise<PodProcess> {
    const { api, pod, clock } = this.#settings;
    let failure: unknown;
    for (let failures = 0; failures < openAttempts; failures += 1) {
      if (failures > 0) await clock.sleep(delayMs(openBackoff, failures), signal);
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

/** Not when the API server itself reports that the pod does not exist or the request is wrong. */
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

interface KnownInput {
  readonly input: Buffer | SizedInput | 'detached';
  readonly close: () => Promise<void>;
}

/**
 * Stores a stream of unknown length in a file: before Kubernetes 1.30 a client cannot close a command's input, so the
 * command must get the length in advance. A stream that fails halfway thus has not started the command.
 */
async function spooled(input: SessionRequest['input'], dir: string): Promise<KnownInput> {
  if (!(input instanceof Readable)) return { input, close: () => Promise.resolve() };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, randomHex(12));
  const file = await open(path, 'wx+', 0o600);
  try {
    // No other process needs its name, and no file remains when this process is killed.
    await rm(path);
    let bytes = 0;
    for await (const chunk of input as AsyncIterable<Buffer>) {
      await file.writeFile(chunk);
      bytes += chunk.length;
    }
    if (bytes === 0) {
      await file.close();
      return { input: Buffer.alloc(0), close: () => Promise.resolve() };
    }
    const stream = file.createReadStream({ start: 0, autoClose: false });
    return {
      input: { stream, bytes },
      close: async () => {
        stream.destroy();
        await file.close();
      },
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}
