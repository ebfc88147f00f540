import { openRecord, withoutQuery, type AccessRecord } from './access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { ExchangeClient } from './exchange-client.ts';
import { givenRequestId } from './http1/forward-request.ts';
import type { RequestHead } from './http1/request-head.ts';
import { givenTraceId } from './http1/trace-id.ts';

/** The record of a request whose head has just been read: who asks for what, and by which names it is found again. */
export function recordArrival({ clock, newRequestId }: BalancerContext, client: ExchangeClient, head: RequestHead): AccessRecord {
  const record = openRecord(clock.now(), clock.monotonic());
  record.requestId = givenRequestId(head) ?? newRequestId();
  record.traceId = givenTraceId(head);
  record.protocol = client.protocol;
  record.isTls = client.forwarded.proto === 'https';
  record.method = head.method;
  record.path = withoutQuery(head.path);
  return record;
}
