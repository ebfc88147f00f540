import type { ClientSessionOptions, ServerOptions } from 'node:http2';
import type { BalancerConfig } from '../../domain/balancer-link.ts';
import { defaultHeadLimits } from '../http1/limits.ts';

/** Of one client's connection at a time; browsers and gRPC clients open another connection when they need more. */
const maxConcurrentStreams = 256;
/** Of a request's body that is on its way while nobody takes it; what proxies at the edge are advised to hold (Envoy's "edge best practices"). */
const clientWindowBytes = 65_536;
/** Of a response's body that waits for a slow client. */
const replicaWindowBytes = 262_144;
/** Of all streams of a connection together. Node gives it back as bytes arrive, so it only has to be larger than what a network holds. */
export const connectionWindowBytes = 4_194_304;
/** RFC 7541, section 4.1: what a field counts beyond its name and value. */
const bytesPerField = 32;
/** Heads up to twice the limits are read, so that they are answered by 431 and not by a reset. */
const headRoom = 2;
/** `:method`, `:scheme`, `:authority`, `:path` and one to spare. */
const pseudoFields = 5;

/** How we speak HTTP/2 to clients; nothing of it is taken on trust. */
export function serverOptions(config: BalancerConfig): ServerOptions {
  const { maxHeaderBytes, maxHeaderCount } = config;
  return {
    settings: {
      maxConcurrentStreams,
      initialWindowSize: clientWindowBytes,
      maxHeaderListSize: headRoom * (maxHeaderBytes + maxHeaderCount * bytesPerField),
    },
    maxHeaderListPairs: headRoom * maxHeaderCount + pseudoFields,
    // MiB, of what Node holds for one connection.
    maxSessionMemory: 10,
    // Entries of one SETTINGS frame; there are eight that mean anything.
    maxSettings: 16,
    // Resets of streams by the client: so many at once, then so many a second (CVE-2023-44487).
    streamResetBurst: 500,
    streamResetRate: 50,
    // What a confused client may send before it is sent away.
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
    // Fields are passed on as they came, twice where they came twice.
    strictSingleValueFields: false,
  };
}

/** How we speak HTTP/2 to replicas: heads far beyond the limits are read, so that one of them fails its own request and not the connection. */
export const clientOptions: ClientSessionOptions & { readonly strictSingleValueFields: boolean } = {
  settings: { enablePush: false, initialWindowSize: replicaWindowBytes, maxHeaderListSize: 4 * defaultHeadLimits.headBytes },
  maxHeaderListPairs: 5 * defaultHeadLimits.fields,
  maxReservedRemoteStreams: 0,
  // MiB: as many windows as there are streams, four times over, so that it is the windows that limit.
  maxSessionMemory: 256,
  strictSingleValueFields: false,
};
