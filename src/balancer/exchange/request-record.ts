import { type AccessRecord, openRecord, withoutQuery } from '../access-log/access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { ExchangeClient } from './exchange-client.ts';
import { givenRequestId } from '../http1/forward-request.ts';
import { type BalancerResponse, isClientFault } from '../http1/balancer-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { RequestLine } from '../http1/request-parser.ts';
import { randomHex } from '../../shared/hex.ts';
import { FieldKind } from '../http1/field-kinds.ts';

/** Makes the record of a request whose head has just been read. */
export function recordArrival(context: BalancerContext, client: Asking, head: RequestHead): AccessRecord {
  const record = openFor(context, client);
  record.requestId = givenRequestId(head) ?? context.newRequestId();
  record.traceId = givenTraceId(head);
  record.method = head.method;
  record.path = withoutQuery(head.path);
  return record;
}

/** A request that no `Exchange` reads. */
export interface UnreadRequest {
  readonly head?: RequestHead | undefined;
  /** What was read of a refused head. */
  readonly line?: RequestLine | undefined;
}

/** Makes the record of a request that the balancer answered without an `Exchange`. */
export function recordUnread(
  context: BalancerContext,
  client: Asking,
  response: BalancerResponse,
  { head, line }: UnreadRequest = {},
): AccessRecord {
  const record = head === undefined ? openFor(context, client) : recordArrival(context, client, head);
  if (head === undefined) record.requestId = context.newRequestId();
  if (line !== undefined) {
    record.method = line.method;
    // The absolute form of a refused target may have a password.
    if (line.target.startsWith('/')) record.path = withoutQuery(line.target);
  }
  record.status = response.status;
  record.code = response.code;
  record.outcome = isClientFault(response.status) ? 'refused' : 'unavailable';
  return record;
}

/** Makes the record of a connection that is closed before a request was read. `code`: why. */
export function recordRefusal(context: BalancerContext, client: Asking, code: string, fault: string | undefined): AccessRecord {
  return { ...openFor(context, client), outcome: 'no_request', code, fault };
}

/** The fields of a client that a record needs. There may be no complete `ExchangeClient`. */
type Asking = Pick<ExchangeClient, 'protocol' | 'forwarded'>;

function openFor({ clock, config }: Pick<BalancerContext, 'clock' | 'config'>, client: Asking): AccessRecord {
  const record = openRecord(clock.now(), clock.monotonic());
  if (config.accessLogAddresses) record.client = client.forwarded.address;
  record.protocol = client.protocol;
  record.isTls = client.forwarded.proto === 'https';
  return record;
}

/** Ids for searching in logs, not secret: a prefix, unique across threads and processes, and a counter. */
export function createRequestIds(): () => string {
  const prefix = randomHex(12);
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}

/** `traceparent`: version, trace, parent, flags (W3C Trace Context, section 3.2). Later versions may add fields. */
const format = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;
const lengthOfVersion00 = 55;
const maxLength = 256;

/** The request's trace id, 32 hex digits; undefined unless the request has exactly one `traceparent`, a valid one. */
export function givenTraceId({ fields }: RequestHead): string | undefined {
  const index = fields.kinds.indexOf(FieldKind.traceparent);
  if (index < 0 || fields.kinds.lastIndexOf(FieldKind.traceparent) !== index) return undefined;
  const value = fields.value(index);
  if (value.length > maxLength || (value.startsWith('00') && value.length !== lengthOfVersion00)) return undefined;
  return format.exec(value)?.[1];
}
