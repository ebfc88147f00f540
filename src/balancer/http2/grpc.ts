import type { OwnResponse } from '../http1/own-response.ts';

/** What HTTP says with a status, as gRPC says it: its own mapping for clients, made finer where the balancer knows more. */
const grpcStatuses: Readonly<Record<number, number>> = {
  // DEADLINE_EXCEEDED
  408: 4,
  504: 4,
  // RESOURCE_EXHAUSTED
  413: 8,
  414: 8,
  431: 8,
  // UNIMPLEMENTED
  405: 12,
  501: 12,
  // UNAVAILABLE
  502: 14,
  503: 14,
};
const grpcInternal = 13;

/** The fields that tell a gRPC client of an answer of ours: its status is one of gRPC, and the one of HTTP is 200. */
export function grpcFields(response: OwnResponse): readonly string[] {
  const status = grpcStatuses[response.status] ?? grpcInternal;
  return [
    ':status',
    '200',
    'content-type',
    'application/grpc',
    'grpc-status',
    String(status),
    'grpc-message',
    percentEncoded(response.message),
  ];
}

/** Visible ASCII but `%` stands for itself. */
function percentEncoded(message: string): string {
  let out = '';
  for (const octet of Buffer.from(message)) {
    const isPlain = octet >= 0x20 && octet <= 0x7e && octet !== 0x25;
    out += isPlain ? String.fromCharCode(octet) : `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}
