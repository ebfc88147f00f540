import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { isAlive, isProcessIdentity } from '../../shared/process-identity.ts';
import { programEntry } from '../../shared/program-files.ts';
import { forwarderFiles, listRecords, type ForwarderFiles } from './way-files.ts';

/** From a forwarder's start to its first answer, ms: it has a program to load. */
const startTimeoutMs = 60_000;

/** Between attempts to reach one that has just been started, ms. */
const pauseMs = 50;

/** How often it is looked whether the forwarder still lives, ms; that costs a look at /proc. */
const lookMs = 1_000;

/** So many looks between two words to it, which keep it from ending as idle. */
const looksBetweenWords = 300;

/** The forwarder of one cluster, as this process sees it: started when it is needed, and again when it has ended. */
export class ForwarderLink {
  readonly files: ForwarderFiles;
  readonly #paths: HomePaths;
  readonly #context: string;
  readonly #clock: Clock;
  #keeper: CancelTimer | undefined;
  #isBusy = false;
  #looks = 0;

  constructor(paths: HomePaths, context: string, clock: Clock) {
    this.files = forwarderFiles(paths, context);
    this.#paths = paths;
    this.#context = context;
    this.#clock = clock;
  }

  /** Has it listen on what a record says, or on nothing when the record is gone. Returns when it does. */
  async sync(record: string, signal?: AbortSignal): Promise<void> {
    const deadline = this.#clock.monotonic() + startTimeoutMs;
    let started: ChildProcess | undefined;
    for (;;) {
      signal?.throwIfAborted();
      const said = await this.#ask(record);
      if (said === 'ok') return;
      if (said !== undefined) throw this.#error(said);
      if (this.#clock.monotonic() > deadline) throw this.#error('it did not start in time');
      // One that was ending at that moment did not answer either; ours may have given way to it.
      if (started === undefined || (hasEnded(started) && !this.#isThere())) started = this.#start();
      await this.#clock.sleep(pauseMs, signal);
    }
  }

  /** Tells a forwarder, if there is one, that a record is gone. */
  async forget(record: string): Promise<void> {
    await this.#ask(record);
  }

  /** Keeps the forwarder alive while this process lives and there are ways. Cheap. */
  keep(): void {
    if (this.#keeper !== undefined || listRecords(this.files).length === 0) return;
    this.#keeper = this.#clock.every(lookMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      this.#looks = (this.#looks + 1) % looksBetweenWords;
      const [record] = listRecords(this.files);
      if (record === undefined) {
        this.#keeper?.();
        this.#keeper = undefined;
      } else if (!this.#isThere()) await this.sync(record);
      else if (this.#looks === 0) await this.#ask('');
    } catch {
      // Its log says why; here it is only tried again.
    } finally {
      this.#isBusy = false;
    }
  }

  #isThere(): boolean {
    const identity = readJsonFile(this.files.identity)?.value;
    return isProcessIdentity(identity) && isAlive(identity);
  }

  #start(): ChildProcess {
    mkdirSync(dirname(this.files.log), { recursive: true, mode: 0o700 });
    const log = openSync(this.files.log, 'a', 0o600);
    try {
      const child = spawn(process.execPath, [programEntry('remote/kubernetes/forwarder'), this.#context], {
        detached: true,
        stdio: ['ignore', log, log],
        env: { ...wholeEnv(), SVC_HOME: this.#paths.home },
      });
      // That it could not be started shows as no answer.
      child.on('error', () => undefined);
      child.unref();
      return child;
    } finally {
      closeSync(log);
    }
  }

  /** What it said; undefined when nobody answers. */
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

/** The forwarder of a cluster: one link for all remotes of this process. */
export function forwarderLink(paths: HomePaths, context: string, clock: Clock): ForwarderLink {
  const key = JSON.stringify([paths.home, context]);
  const known = links.get(key);
  if (known !== undefined) return known;
  const link = new ForwarderLink(paths, context, clock);
  links.set(key, link);
  return link;
}
