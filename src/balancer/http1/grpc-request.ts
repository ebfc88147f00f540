import { FieldKind } from './field-kinds.ts';
import type { Trailers } from './chunked-decoder.ts';
import type { RequestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

/** Whether a request is a gRPC request. gRPC requests always have `te: trailers`; gRPC-Web requests do not. */
export function isGrpc({ fields }: RequestHead): boolean {
  if (!fields.kinds.includes(FieldKind.te)) return false;
  return isGrpcType(fields.firstOf(FieldKind.contentType));
}

/** Whether a complete gRPC response has no `grpc-status`: the call then broke off inside the replica. */
export function lacksGrpcStatus({ status, fields }: ResponseHead, trailers: Trailers): boolean {
  if (status !== 200 || !isGrpcType(fields.firstOf(FieldKind.contentType))) return false;
  return (
    !trailers.some((text, index) => index % 2 === 0 && isGrpcStatus(text)) &&
    !fields.kinds.some((_, index) => isGrpcStatus(fields.name(index)))
  );
}

function isGrpcType(contentType: string | undefined): boolean {
  const type = contentType?.toLowerCase();
  return type === 'application/grpc' || type?.startsWith('application/grpc+') === true || type?.startsWith('application/grpc;') === true;
}

function isGrpcStatus(name: string): boolean {
  return name.toLowerCase() === 'grpc-status';
}
