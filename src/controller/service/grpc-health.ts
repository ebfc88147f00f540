/** An empty message with gRPC's prefix: not compressed, no bytes. `HealthCheckRequest` is empty when it asks for the whole server. */
export const noMessage = Buffer.alloc(5);

const prefixBytes = 5;
/** Field 1 as a varint: `status` of `HealthCheckResponse` (grpc/health/v1/health.proto). */
const statusTag = 0x08;
const serving = 1;

/** Whether a message, with its prefix, is a `HealthCheckResponse` that says SERVING. */
export function isServing(message: Buffer): boolean {
  const isWhole = message.length >= prefixBytes && message[0] === 0 && message.readUInt32BE(1) === message.length - prefixBytes;
  // A message has this one field, and its values need one byte.
  return isWhole && message.length === prefixBytes + 2 && message[prefixBytes] === statusTag && message[prefixBytes + 1] === serving;
}

/** Those that a program without a health service, or before it is up, answers with. */
const statusNames: Readonly<Record<string, string>> = {
  5: 'NOT_FOUND',
  12: 'UNIMPLEMENTED (the program has no health service)',
  14: 'UNAVAILABLE',
  16: 'UNAUTHENTICATED',
};

/** A status of gRPC for people. */
export function grpcStatusName(status: string): string {
  const name = statusNames[status];
  return name === undefined ? `gRPC status ${/^\d{1,3}$/.test(status) ? status : '?'}` : `gRPC status ${status}, ${name}`;
}
