/**
 * How to open a byte stream to a replica's port. Plain data, so that any process can store, send and dial it.
 * - `tcp`: connect and send.
 * - `unix`: connect to the socket file, send `PORT\n`, read `OK\n` (then the stream is the replica's) or `ERR
 *   <errno>\n`. The socket file may itself be the end of an ssh forward, as for isolated replicas on SSH hosts.
 * - `forward`: connect to the socket file and send. A forwarder such as ssh carries each connection to `port` of the
 *   machine. If no process listens there, the connection is accepted and ends without a byte.
 */
export type ReplicaAddress = (
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string; readonly port: number }
  | { readonly kind: 'forward'; readonly path: string; readonly port: number }
) & {
  /** The route, for users, where a provider has several: `pod address`, `node port`. */
  readonly by?: string;
};

/** The route of requests to a replica in words: `pod address 10.0.0.7:8080`, `Unix socket`. */
export function describeAddress(address: ReplicaAddress): string {
  const { kind, by } = address;
  if (kind === 'tcp') return `${by ?? 'address'} ${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
  if (kind === 'unix') return by ?? 'Unix socket';
  if (by === 'port-forward') return 'port-forward through the API server';
  return by ?? 'forward over SSH';
}
