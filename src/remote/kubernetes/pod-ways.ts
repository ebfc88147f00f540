import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { PodRef } from '../../kubernetes/kube-api.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import type { ForwarderLink } from './forwarder-link.ts';
import { readWays, recordName, waySocket, type WayEnd } from './way-files.ts';

/**
 * The ways to one pod through the API server: sockets here, held by the forwarder of the cluster. Which ways there are is on disk, so that whoever comes
 * next keeps them as well; the files' names never change.
 */
export class PodWays {
  readonly #link: ForwarderLink;
  readonly #pod: PodRef;
  readonly #record: string;

  constructor(link: ForwarderLink, context: string, pod: PodRef) {
    this.#link = link;
    this.#pod = pod;
    this.#record = recordName(context, pod);
  }

  /** Opens a way and keeps it open while this process lives. */
  async open(to: WayEnd, signal?: AbortSignal): Promise<string> {
    const { files } = this.#link;
    const socket = waySocket(files, this.#record, to);
    const ways = readWays(files, this.#record)?.ways ?? [];
    if (!ways.some((way) => way.socket === socket)) {
      mkdirSync(files.records, { recursive: true, mode: 0o700 });
      writeFileAtomic(join(files.records, this.#record), JSON.stringify({ pod: this.#pod, ways: [...ways, { socket, to }] }));
    }
    await this.#link.sync(this.#record, signal);
    this.#link.keep();
    return socket;
  }

  /** Goes on keeping what an earlier process opened. */
  keep(): void {
    this.#link.keep();
  }

  /** Closes all ways for good. */
  async close(): Promise<void> {
    const { files } = this.#link;
    const record = readWays(files, this.#record);
    if (record === undefined) return;
    rmSync(join(files.records, this.#record), { force: true });
    await this.#link.forget(this.#record);
    for (const { socket } of record.ways) rmSync(socket, { force: true });
  }
}
