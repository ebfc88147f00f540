import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Remote } from '../../remote/remote.ts';
import type { Clock } from '../../shared/clock.ts';
import { hasErrno, messageOf } from '../../shared/errors.ts';
import { numberOf } from '../../shared/hex.ts';
import { programPorts } from '../../shared/program-ports.ts';
import type { Logger } from '../../shared/log.ts';
import { dialReplica } from '../../shared/system/dial.ts';
import { passOn } from '../../shared/system/pass-on.ts';

const dialMs = 5_000;

const { first: firstPort, count: portCount } = programPorts;
const attempts = 20;

type ClusterRemote = Pick<Remote, 'baseDir' | 'localPath' | 'address'>;

/** Where a port of a cluster is reached from the controller's machine, as `127.0.0.1:20000`. */
export interface ClusterPort {
  readonly port: number;
  readonly address: string;
}

interface ClusterPortsDeps {
  /** The cluster's key: its ports are the same again after a restart of the controller, if they are free. */
  readonly key: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Makes ports of a cluster's machine reachable on the loopback of the controller's machine, while the cluster is up. */
export class ClusterPorts {
  readonly #deps: ClusterPortsDeps;
  readonly #open = new Map<number, { readonly address: string; readonly server: Server | undefined }>();

  constructor(deps: ClusterPortsDeps) {
    this.#deps = deps;
  }

  get all(): readonly ClusterPort[] {
    return [...this.#open].map(([port, { address }]) => ({ port, address })).toSorted((a, b) => a.port - b.port);
  }

  /** Opens those of the ports that are not open yet. One for which no port is free here stays without an address. */
  async open(ports: readonly number[], remote: ClusterRemote): Promise<void> {
    const isOwnMachine = remote.localPath(remote.baseDir) !== undefined;
    for (const port of ports) {
      if (this.#open.has(port)) continue;
      if (isOwnMachine) this.#open.set(port, { address: `127.0.0.1:${port}`, server: undefined });
      else await this.#relay(port, remote);
    }
  }

  /** Connections that are open may finish. */
  close(): void {
    for (const { server } of this.#open.values()) server?.close();
    this.#open.clear();
  }

  async #relay(port: number, remote: ClusterRemote): Promise<void> {
    const { key, clock, log } = this.#deps;
    const server = createServer({ allowHalfOpen: true }, (client) => {
      passOn(client, async () => dialReplica(await remote.address(port, { isolated: false }), { timeoutMs: dialMs, clock })).catch(
        (error: unknown) => log.info({ reason: messageOf(error), port }, 'a connection could not be passed on to a cluster'),
      );
    });
    const first = numberOf(`${key}/${port}`, portCount);
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const own = firstPort + ((first + attempt) % portCount);
      server.listen({ host: '127.0.0.1', port: own, exclusive: true });
      try {
        await once(server, 'listening');
        server.on('error', (error) => log.warn({ err: error, port }, 'a port of a cluster does not listen'));
        this.#open.set(port, { address: `127.0.0.1:${own}`, server });
        return;
      } catch (error) {
        if (!hasErrno(error, 'EADDRINUSE')) throw error;
      }
    }
    log.warn({ port }, `no port from ${firstPort + first} on is free for a port of a cluster`);
  }
}
