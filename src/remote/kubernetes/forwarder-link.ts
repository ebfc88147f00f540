import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import type { PodRef } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { shortFingerprint } from '../../shared/hex.ts';
import { getOrAdd } from '../../shared/get-or-add.ts';
import { openLog } from '../../shared/system/log-file.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { isAlive, readIdentity } from '../../shared/system/process-identity.ts';
import { programEntry } from '../../shared/program-files.ts';
import { TunnelKeeper, Tunnels, type TunnelCarrier } from '../tunnels.ts';
import { forwarderFiles, type ForwarderFiles } from './forwarder-files.ts';

/** From a forwarder's start to its first answer, ms. It has to load its program. */
const startTimeoutMs = 60_000;

/** Delay between attempts to reach a forwarder that was just started, ms. */
const pauseMs = 50;

/** This process's link to a Kubernetes cluster's forwarder, which it starts on demand. */
export class ForwarderLink {
  readonly #files: ForwarderFiles;
  readonly #paths: HomePaths;
  readonly #context: string;
  readonly #clock: Clock;
  readonly #keeper: TunnelKeeper;

  constructor(paths: HomePaths, context: string, clock: Clock) {
    this.#files = forwarderFiles(paths, context);
    this.#paths = paths;
    this.#context = context;
    this.#clock = clock;
    this.#keeper = new TunnelKeeper(this, clock);
  }

  /** Carries the tunnels to one pod. The forwarder holds their sockets. */
  carrier(pod: PodRef): TunnelCarrier {
    const { namespace, name: podName, container = '' } = pod;
    const name = shortFingerprint([this.#context, namespace, podName, container]);
    return {
      records: this.#files.records,
      name,
      newRoute: { pod },
      keeper: this.#keeper,
      endOf: (to) => to,
      carry: (signal) => this.#sync(name, signal),
      drop: async (tunnels) => {
        // Without a forwarder, no process listens on the sockets.
        await this.#ask(name);
        for (const { socket } of tunnels) rmSync(socket, { force: true });
      },
    };
  }

  hasTunnels(): boolean {
    return this.#someRecord() !== undefined;
  }

  areUp(): boolean {
    const identity = readIdentity(this.#files.identity);
    return identity !== undefined && isAlive(identity);
  }

  /** A new forwarder takes all records. */
  async carry(): Promise<void> {
    const record = this.#someRecord();
    if (record !== undefined) await this.#sync(record);
  }

  async keepAlive(): Promise<void> {
    await this.#ask('');
  }

  #someRecord(): string | undefined {
    const { records } = this.#files;
    return records.list().find((name) => records.read(name) !== undefined);
  }

  /** Returns when the forwarder listens on a record's sockets, or has closed those of a removed record. */
  async #sync(record: string, signal?: AbortSignal): Promise<void> {
    const deadline = this.#clock.monotonic() + startTimeoutMs;
    let started: ChildProcess | undefined;
    for (;;) {
      signal?.throwIfAborted();
      const said = await this.#ask(record);
      if (said === 'ok') return;
      if (said !== undefined) throw this.#error(said);
      if (this.#clock.monotonic() > deadline) throw this.#error('it did not start in time');
      // The forwarder may have been ending, and the one that this process started may have exited in its favour.
      if (started === undefined || (hasEnded(started) && !this.areUp())) started = this.#start();
      await this.#clock.sleep(pauseMs, signal);
    }
  }

  #start(): ChildProcess {
    const log = openLog(this.#files.log);
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

  #ask(line: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      let said = '';
      const socket = connect({ path: this.#files.control }, () => socket.write(`${line}\n`));
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
      hint: `Its log: ${this.#files.log}`,
    });
  }
}

function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

const links = new Map<string, ForwarderLink>();

/** All remotes of this process share one link to the forwarder of a Kubernetes cluster. */
export function podTunnels(pod: PodRef, context: string, paths: HomePaths, clock: Clock): Tunnels {
  const link = getOrAdd(links, JSON.stringify([paths.home, context]), () => new ForwarderLink(paths, context, clock));
  return new Tunnels(link.carrier(pod));
}
