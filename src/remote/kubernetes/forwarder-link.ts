import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { connect } from 'node:net';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { openLog } from '../../shared/system/log-file.ts';
import { readJsonFile } from '../../shared/system/files.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { isAlive, isProcessIdentity } from '../../shared/system/process-identity.ts';
import { programEntry } from '../../shared/program-files.ts';
import { forwarderFiles, listRecords, type ForwarderFiles } from './tunnel-files.ts';

/** From a forwarder's start to its first answer, ms. It has to load its program. */
const startTimeoutMs = 60_000;

/** Between attempts to reach a forwarder that has just been started, ms. */
const pauseMs = 50;

/** Poll interval for whether the forwarder still runs, ms. Each poll reads /proc. */
const pollIntervalMs = 1_000;

/** Polls between two keepalive messages to the forwarder, which prevent its end as idle. */
const pollsPerKeepalive = 300;

/** This process's link to the forwarder of one Kubernetes cluster: starts it on demand, and again when it has ended. */
export class ForwarderLink {
  readonly files: ForwarderFiles;
  readonly #paths: HomePaths;
  readonly #context: string;
  readonly #clock: Clock;
  #keeper: CancelTimer | undefined;
  #isBusy = false;
  #polls = 0;

  constructor(paths: HomePaths, context: string, clock: Clock) {
    this.files = forwarderFiles(paths, context);
    this.#paths = paths;
    this.#context = context;
    this.#clock = clock;
  }

  /**
   * Makes the forwarder listen on the sockets of a record, or close them when the record was removed. Returns when that
   * is done.
   */
  async sync(record: string, signal?: AbortSignal): Promise<void> {
    const deadline = this.#clock.monotonic() + startTimeoutMs;
    let started: ChildProcess | undefined;
    for (;;) {
      signal?.throwIfAborted();
      const said = await this.#ask(record);
      if (said === 'ok') return;
      if (said !== undefined) throw this.#error(said);
      if (this.#clock.monotonic() > deadline) throw this.#error('it did not start in time');
      // A forwarder that was just ending did not answer either, and the one that this process started may have exited
      // in its favour.
      if (started === undefined || (hasEnded(started) && !this.#isThere())) started = this.#start();
      await this.#clock.sleep(pauseMs, signal);
    }
  }

  /** Notifies the forwarder, if it runs, that a record was removed. */
  async forget(record: string): Promise<void> {
    await this.#ask(record);
  }

  /** Keeps the forwarder alive while this process lives and there are tunnels. Cheap. */
  keep(): void {
    if (this.#keeper !== undefined || listRecords(this.files).length === 0) return;
    this.#keeper = this.#clock.every(pollIntervalMs, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      this.#polls = (this.#polls + 1) % pollsPerKeepalive;
      const [record] = listRecords(this.files);
      if (record === undefined) {
        this.#keeper?.();
        this.#keeper = undefined;
      } else if (!this.#isThere()) await this.sync(record);
      else if (this.#polls === 0) await this.#ask('');
    } catch {
      // The forwarder's log has the cause; the next poll retries.
    } finally {
      this.#isBusy = false;
    }
  }

  #isThere(): boolean {
    const identity = readJsonFile(this.files.identity)?.value;
    return isProcessIdentity(identity) && isAlive(identity);
  }

  #start(): ChildProcess {
    const log = openLog(this.files.log);
    try {
      const child = spawn(process.execPath, [programEntry('remote/kubernetes/forwarder'), this.#context], {
        detached: true,
        stdio: ['ignore', log, log],
        env: { ...wholeEnv(), SVC_HOME: this.#paths.home },
      });
      // A failed start shows as a missing answer.
      child.on('error', () => undefined);
      child.unref();
      return child;
    } finally {
      closeSync(log);
    }
  }

  /** The forwarder's answer; undefined when no forwarder answers. */
  #ask(line: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      let said = '';
      const socket = connect({ path: this.files.control }, () => socket.write(`${line}\n`));
      const cancel = this.#clock.after(startTimeoutMs, () => socket.destroy());
      socket.on('data', (chunk: Buffer) => {
        said += chunk.toString('utf8');
        if (said.endsWith('\n')) socket.destroy();
      });
      socket.on('error', () => undefined);
      socket.once('close', () => {
        cancel();
        resolve(said.endsWith('\n') ? said.trim() : undefined);
      });
    });
  }

  #error(why: string): SvcError {
    return new SvcError('SVC_KUBERNETES', `The ports of pods of ${this.#context} cannot be forwarded: ${why}.`, {
      hint: `Its log: ${this.files.log}`,
    });
  }
}

function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

const links = new Map<string, ForwarderLink>();

/** The forwarder of a Kubernetes cluster: one link for all remotes of this process. */
export function forwarderLink(paths: HomePaths, context: string, clock: Clock): ForwarderLink {
  const key = JSON.stringify([paths.home, context]);
  const known = links.get(key);
  if (known !== undefined) return known;
  const link = new ForwarderLink(paths, context, clock);
  links.set(key, link);
  return link;
}
