import type { Socket } from 'node:net';
import type { Clock } from '../../shared/clock.ts';
import { DialError, dialReplica } from '../../shared/dial.ts';
import { hasConnection } from './tcp-table.ts';

/** What lies in a cluster's own network answers within this, ms. */
const dialTimeoutMs = 1_500;

/** Looks at the pod's connections: an accepted one may be in its table a moment later. */
const looks = 3;
const pauseMs = 100;

/** For the program to end the connection as well, ms. */
const farewellMs = 1_000;

/** How it is seen which connections end in a pod. */
export interface ProofDeps {
  /** /proc/net/tcp and tcp6 of the pod. */
  readonly connectionsInPod: () => Promise<string>;
  readonly clock: Clock;
}

/**
 * Whether an address leads to the pod's own port: a connection to it is opened, nothing is sent, and the pod's own list of connections must have it. Any
 * other host that answers there, in a network that uses the same addresses, is not taken for the pod; neither is a pod behind a translation of
 * addresses that hides who calls.
 */
export async function leadsToPod(
  { host, port, podPort }: { readonly host: string; readonly port: number; readonly podPort: number },
  { connectionsInPod, clock }: ProofDeps,
): Promise<boolean> {
  let socket: Socket;
  try {
    socket = await dialReplica({ kind: 'tcp', host, port }, { timeoutMs: dialTimeoutMs, clock });
  } catch (error) {
    if (error instanceof DialError) return false;
    throw error;
  }
  socket.on('error', () => undefined);
  try {
    const { localAddress, localPort } = socket;
    if (localAddress === undefined || localPort === undefined) return false;
    for (let look = 0; look < looks; look += 1) {
      if (look > 0) await clock.sleep(pauseMs);
      if (hasConnection(await connectionsInPod(), podPort, { address: localAddress, port: localPort })) return true;
    }
    return false;
  } finally {
    part(socket, clock);
  }
}

/** Ends a connection as a client does: a program that has said something need not see it reset. */
function part(socket: Socket, clock: Clock): void {
  const cancel = clock.after(farewellMs, () => socket.destroy());
  socket.once('close', cancel);
  socket.resume();
  socket.end();
}
