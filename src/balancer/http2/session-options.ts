import type { ClientSessionOptions, ServerOptions } from 'node:http2';
import type { BalancerConfig } from '../../domain/balancer-link.ts';
import { defaultHeadLimits } from '../http1/limits.ts';

/** Concurrent streams of one client connection; browsers and gRPC clients open another one when they need more. */
const maxClientStreams = 256;
/** Window for a request's body that no replica takes yet, as in Envoy's "edge best practices". */
const clientWindowBytes = 65_536;
/** Bytes of a response's body that wait for a slow client. */
const replicaWindowBytes = 262_144;
/**
 * Window over all streams of a connection. Node refills it as bytes arrive, so it must only exceed what a network
 * holds.
 */
export const connectionWindowBytes = 4_194_304;
/** RFC 7541, section 4.1: the size of a field beyond its name and value. */
const bytesPerField = 32;
/** Heads up to twice the limits are read, so that they get 431 and not a reset. */
const headRoom = 2;
/** `:method`, `:scheme`, `:authority`, `:path` and one to spare. */
const pseudoFields = 5;

/** The HTTP/2 options towards clients, which are untrusted. */
export function serverOptions(config: BalancerConfig): ServerOptions {
  const { maxHeaderBytes, maxHeaderCount } = config;
  return {
    settings: {
      maxConcurrentStreams: maxClientStreams,
      initialWindowSize: clientWindowBytes,
      maxHeaderListSize: headRoom * (maxHeaderBytes + maxHeaderCount * bytesPerField),
    },
    maxHeaderListPairs: headRoom * maxHeaderCount + pseudoFields,
    // MiB that Node may hold for one connection.
    maxSessionMemory: 10,
    // Entries of one SETTINGS frame; only eight settings have a meaning.
    maxSettings: 16,
    // Resets of streams by the client: a burst, then a rate per second (CVE-2023-44487).
    streamResetBurst: 500,
    streamResetRate: 50,
    // Invalid frames that a confused client may send before it is disconnected.
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
    // Fields are passed on as they came, including duplicates.
    strictSingleValueFields: false,
    // Such fields would vanish without a trace. `readRequestFields` refuses them instead.
    strictFieldWhitespaceValidation: false,
  };
}

/** The HTTP/2 options towards replicas. A head far beyond the limits is read, so it fails only its own request. */
export const clientOptions: ClientSessionOptions & { readonly strictSingleValueFields: boolean } = {
  settings: { enablePush: false, initialWindowSize: replicaWindowBytes, maxHeaderListSize: 4 * defaultHeadLimits.headBytes },
  maxHeaderListPairs: 5 * defaultHeadLimits.fields,
  maxReservedRemoteStreams: 0,
  // MiB: four times as many windows as there are streams, so that the windows are the limit.
  maxSessionMemory: 256,
  strictSingleValueFields: false,
};
