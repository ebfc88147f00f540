import { openRecord, withoutQuery, type AccessRecord } from '../access-log/access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { ExchangeClient } from './exchange-client.ts';
import { givenRequestId } from '../http1/forward-request.ts';
import { isClientFault, type OwnResponse } from '../http1/own-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { givenTraceId } from '../http1/trace-id.ts';

/** The record of a request whose head has just been read: who asks for what, and by which names it is found again. */
export function recordArrival(context: BalancerContext, client: ExchangeClient, head: RequestHead): AccessRecord {
  const record = openFor(context, client);
  record.requestId = givenRequestId(head) ?? context.newRequestId();
  record.traceId = givenTraceId(head);
  record.method = head.method;
  record.path = withoutQuery(head.path);
  return record;
}

/** The record of a request that could not be read, and what its client was told. */
export function recordUnread(context: BalancerContext, client: Asking, response: OwnResponse): AccessRecord {
  const record = openFor(context, client);
  record.requestId = context.newRequestId();
  record.status = response.status;
  record.code = response.code;
  record.outcome = isClientFault(response.status) ? 'refused' : 'unavailable';
  return record;
}

/** What a record says of the connection. */
type Asking = Pick<ExchangeClient, 'protocol' | 'forwarded'>;

function openFor({ clock }: BalancerContext, client: Asking): AccessRecord {
  const record = openRecord(clock.now(), clock.monotonic());
  record.protocol = client.protocol;
  record.isTls = client.forwarded.proto === 'https';
  return record;
}
