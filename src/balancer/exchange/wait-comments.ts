import { isEventStream } from '../http1/forward-response.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import { noTrailers, type Trailers } from '../http1/chunked-decoder.ts';
import { isGrpc } from '../http1/grpc-request.ts';
import { defaultHeadLimits } from '../http1/limits.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { readResponseFields } from '../http2/read-heads.ts';
import { expectedWaitNow } from './attempts.ts';
import type { BalancerContext } from './balancer-context.ts';
import { errorEvent } from './balancer-responses.ts';
import type { ExchangeClient, Reply } from './exchange-client.ts';

/** How often a client that waits gets a comment, ms: proxies and clients close connections that are silent for longer. */
const commentIntervalMs = 5_000;

/** Of the client's request; `docs/concepts.md` documents it. */
const waitField = 'x-svc-wait';

const headFields = [':status', '200', 'content-type', 'text/event-stream', 'cache-control', 'no-cache'] as const;

/**
 * Whether the client takes an event stream whose comments report the wait. A client that expects 100 (Continue) would
 * get the final status before it sends its body, and HTTP/1.0 has no chunks.
 */
export function wantsComments(head: RequestHead): boolean {
  const { fields, method, minorVersion, expectsContinue } = head;
  if (method === 'HEAD' || minorVersion === 0 || expectsContinue || isGrpc(head)) return false;
  const wait = fields.indexOfName(waitField);
  const accept = fields.indexOfName('accept');
  if (wait < 0 || accept < 0 || fields.value(wait).toLowerCase() !== 'comments') return false;
  return fields.value(accept).toLowerCase().includes('text/event-stream');
}

/** Whether the replica's response can continue a stream of which the client already has the status and comments. */
export function continuesComments(head: ResponseHead): boolean {
  return head.status === 200 && isEventStream(head) && head.fields.indexOfName('content-encoding') < 0;
}

/**
 * The reply to a client that gets comments while its request waits. The status 200 has gone out, so the head of the
 * replica's event stream is left out, and an answer of the balancer becomes an event `error`.
 */
export class WaitComments implements Reply {
  readonly #context: BalancerContext;
  readonly #client: ExchangeClient;
  readonly #reply: Reply;
  /** By `Deadlines.now`. */
  #nextAt = Number.NEGATIVE_INFINITY;

  /** Begins the event stream. */
  constructor(context: BalancerContext, client: ExchangeClient, requestId: string) {
    this.#context = context;
    this.#client = client;
    this.#reply = client.reply;
    const head = readResponseFields(headFields, false, defaultHeadLimits);
    if (typeof head === 'string') throw new Error(`The head of the comments is not valid: ${head}`);
    this.#reply.head(head, requestId, '');
  }

  /** Sends a comment, unless the last one is recent or the client does not read, and sets the time of the next one. */
  write(isClientStalled: boolean): void {
    const { deadlines } = this.#context;
    if (deadlines.now >= this.#nextAt) {
      this.#nextAt = deadlines.now + commentIntervalMs;
      if (!isClientStalled) this.#comment();
    }
    this.#client.deadlineAt = this.#nextAt;
  }

  #comment(): void {
    const wait = expectedWaitNow(this.#context);
    this.#write(Buffer.from(`: ${wait === undefined ? 'waiting for a replica' : `waiting: ${wait.text}`}\n\n`));
    this.#reply.flush();
  }

  /** The final status has gone out, and no interim response may follow it. */
  interim(): void {}

  /** See `continuesComments`. */
  head(): void {}

  body(bytes: Buffer, from: number, to: number): void {
    this.#reply.body(bytes, from, to);
  }

  /** No trailers: the head announced none. */
  end(_trailers: Trailers): void {
    this.#reply.end(noTrailers);
  }

  own(response: BalancerResponse): void {
    this.#write(errorEvent(response));
    this.#reply.end(noTrailers);
  }

  flush(): boolean {
    return this.#reply.flush();
  }

  #write(bytes: Buffer): void {
    this.#reply.body(bytes, 0, bytes.length);
  }
}
