/**
 * How to open a byte stream to a replica's port. Plain data, so that it can be stored, sent and dialled by any process.
 * - `tcp`: connect and talk.
 * - `unix`: connect to the socket file, send `PORT\n`, read `OK\n` (then the stream is the replica's) or `ERR <errno>\n`.
 */
export type ReplicaAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string; readonly port: number };
