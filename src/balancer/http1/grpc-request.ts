import { FieldKind } from './field-kinds.ts';
import type { RequestHead } from './request-head.ts';

/** Whether a request is one of gRPC itself, which always says `te: trailers`; gRPC-Web is made for HTTP/1.1 and does not. */
export function isGrpc({ fields }: RequestHead): boolean {
  if (!fields.kinds.includes(FieldKind.te)) return false;
  const type = fields.firstOf(FieldKind.contentType)?.toLowerCase();
  return type === 'application/grpc' || type?.startsWith('application/grpc+') === true || type?.startsWith('application/grpc;') === true;
}
