import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { PodRef } from '../../kubernetes/kube-api.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { ForwarderLink } from './forwarder-link.ts';
import { readTunnels, recordName, tunnelSocket, type TunnelEnd } from './tunnel-files.ts';

/**
 * The tunnels to one pod through the API server: local sockets, held by the forwarder of the Kubernetes cluster. A
 * record on disk lists them, so that a later process keeps them as well. The socket paths never change.
 */
export class PodTunnels {
  readonly #link: ForwarderLink;
  readonly #pod: PodRef;
  readonly #record: string;

  constructor(link: ForwarderLink, context: string, pod: PodRef) {
    this.#link = link;
    this.#pod = pod;
    this.#record = recordName(context, pod);
  }

  /** Opens a tunnel and keeps it open while this process lives. */
  async open(to: TunnelEnd, signal?: AbortSignal): Promise<string> {
    const { files } = this.#link;
    const socket = tunnelSocket(files, this.#record, to);
    const tunnels = readTunnels(files, this.#record)?.tunnels ?? [];
    if (!tunnels.some((tunnel) => tunnel.socket === socket)) {
      mkdirSync(files.records, { recursive: true, mode: 0o700 });
      writeFileAtomic(join(files.records, this.#record), JSON.stringify({ pod: this.#pod, ways: [...tunnels, { socket, to }] }));
    }
    await this.#link.sync(this.#record, signal);
    this.#link.keep();
    return socket;
  }

  /** Keeps the tunnels that an earlier process opened. */
  keep(): void {
    this.#link.keep();
  }

  /** Closes all tunnels permanently. */
  async close(): Promise<void> {
    const { files } = this.#link;
    const record = readTunnels(files, this.#record);
    if (record === undefined) return;
    rmSync(join(files.records, this.#record), { force: true });
    await this.#link.forget(this.#record);
    for (const { socket } of record.tunnels) rmSync(socket, { force: true });
  }
}
