import { createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { BalancerReplica, ReplicasCommand } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import { dialReplica } from '../../shared/system/dial.ts';
import { passOn } from '../../shared/system/pass-on.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';

const dialMs = 5_000;

interface RelayDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Address at which balancers on other machines reach this one. */
  readonly ownAddress: string;
}

interface Relay {
  readonly server: Server;
  readonly port: number;
}

/**
 * Relays connections of balancers on other machines to replicas that only this machine can reach. Each such replica has
 * a local port while it is in the endpoint set; connections may finish afterwards.
 */
export class ReplicaRelays {
  readonly #deps: RelayDeps;
  readonly #relays = new Map<string, Relay>();

  constructor(deps: RelayDeps) {
    this.#deps = deps;
  }

  /** Rewrites the set with addresses that balancers on other machines can use. */
  translate(command: ReplicasCommand): ReplicasCommand {
    const needed = new Set(command.replicas.filter(({ address }) => isOwn(address)).map(({ address }) => JSON.stringify(address)));
    for (const [key, { server }] of this.#relays) {
      if (needed.has(key)) continue;
      this.#relays.delete(key);
      server.close();
    }
    return { ...command, replicas: command.replicas.flatMap((replica) => this.#reachable(replica)) };
  }

  close(): void {
    for (const { server } of this.#relays.values()) server.close();
    this.#relays.clear();
  }

  #reachable(replica: BalancerReplica): readonly BalancerReplica[] {
    const { address } = replica;
    if (!isOwn(address)) return [replica];
    try {
      const { port } = this.#relays.get(JSON.stringify(address)) ?? this.#open(address);
      return [{ ...replica, address: { kind: 'tcp', host: this.#deps.ownAddress, port } }];
    } catch (error) {
      this.#deps.log.error({ err: error, replica: replica.id }, 'balancers on other machines cannot be led to a replica');
      return [];
    }
  }

  #open(address: ReplicaAddress): Relay {
    const server = createServer({ allowHalfOpen: true }, (socket) => void this.#pass(socket, address));
    server.on('error', (error) => this.#deps.log.warn({ err: error }, 'a port for balancers on other machines does not listen'));
    // Without a host name, `listen` takes effect synchronously, on all addresses.
    server.listen(0);
    const listening = server.address();
    if (typeof listening !== 'object' || listening === null)
      throw new SvcError('SVC_INTERNAL', 'No port is free to lead balancers to a replica.');
    const relay = { server, port: listening.port };
    this.#relays.set(JSON.stringify(address), relay);
    return relay;
  }

  async #pass(socket: Socket, address: ReplicaAddress): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      await passOn(socket, () => dialReplica(address, { timeoutMs: dialMs, clock }));
    } catch (error) {
      log.info({ reason: messageOf(error) }, 'a connection of a balancer could not be passed on');
    }
  }
}

/** Whether an address is valid on this machine only. */
function isOwn(address: ReplicaAddress): boolean {
  return address.kind !== 'tcp' || address.host.startsWith('127.') || address.host === '::1' || address.host === 'localhost';
}

/** The first address at which other machines may reach this one; loopback where there is none. */
export function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}
