import type { Trailers } from '../http1/chunked-decoder.ts';
import type { Reply } from '../exchange/exchange-client.ts';
import { EventBoundary } from '../http1/event-boundary.ts';
import * as forward from '../http1/forward-response.ts';
import { writeBalancerResponse, type BalancerResponse } from '../http1/balancer-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { goingAwayFrame, WebSocketFrames } from '../http1/web-socket-frames.ts';
import type { MessageWriter } from '../transport/message-writer.ts';
import { brokenEventStream } from '../exchange/balancer-responses.ts';

/** What a reply needs from the connection that it is written to. */
export interface Http1ReplyOwner {
  readonly isRequestRead: boolean;
  readonly isDraining: boolean;
  /** The response is a 101: from now on the connection carries plain bytes. */
  switchProtocols(): void;
}

/** Writes the responses of one HTTP/1 connection, one after the other. */
export class Http1Reply implements Reply {
  readonly #writer: MessageWriter;
  readonly #owner: Http1ReplyOwner;
  #request: RequestHead | undefined;
  #response: ResponseHead | undefined;
  #framing: forward.OutgoingFraming = 'none';
  #isPersistent = false;
  #sawContinue = false;
  readonly #boundary = new EventBoundary();
  readonly #frames = new WebSocketFrames();

  constructor(writer: MessageWriter, owner: Http1ReplyOwner) {
    this.#writer = writer;
    this.#owner = owner;
  }

  /** A request's head was read: the next response answers this request. */
  begin(request: RequestHead): void {
    this.#request = request;
    this.#response = undefined;
    this.#isPersistent = false;
    this.#sawContinue = false;
    this.#boundary.reset();
  }

  /** Whether another request may follow. The response's head announced this, so the client may have sent it already. */
  get isPersistent(): boolean {
    return this.#isPersistent && this.#owner.isRequestRead;
  }

  interim(head: ResponseHead): void {
    if (this.#request?.minorVersion !== 1) return;
    if (head.status === 100) this.#sawContinue = true;
    this.#writer.text(forward.forwardInterimHead(head));
  }

  head(head: ResponseHead, requestId: string, ownLines: string): void {
    const request = this.#request;
    if (request === undefined) return;
    this.#response = head;
    this.#framing = forward.responseFraming(head, request);
    // A client that got no 100 (Continue) may send its body or its next request. Its bytes do not show which.
    const isBodyDoubtful = request.expectsContinue && !this.#sawContinue && !this.#owner.isRequestRead;
    this.#isPersistent = request.isPersistent && this.#framing !== 'close' && !isBodyDoubtful && !this.#owner.isDraining;
    const additions = { requestId, isPersistent: this.#isPersistent, ownLines };
    this.#writer.text(forward.forwardResponseHead(head, request, this.#framing, additions));
    if (head.isTunnel) this.#owner.switchProtocols();
  }

  body(bytes: Buffer, from: number, to: number): void {
    if (this.#framing === 'chunked') {
      this.#writer.chunk(bytes, from, to);
      this.#boundary.track(bytes, from, to);
    } else {
      if (this.#response?.isTunnel === true) this.#frames.track(bytes, from, to);
      this.#writer.bytes(bytes, from, to);
    }
  }

  end(trailers: Trailers): void {
    if (this.#framing === 'chunked') this.#writer.text(forward.lastChunk(trailers));
  }

  own(response: BalancerResponse, requestId: string): void {
    this.#writer.clear();
    // After an unexpected error (500), the state of the connection is unknown.
    const mayGoOn = this.#owner.isRequestRead && !this.#owner.isDraining && response.status !== 500;
    this.#isPersistent = mayGoOn && this.#request?.isPersistent === true;
    this.#writer.text(writeBalancerResponse(response, this.#request, requestId, this.#isPersistent));
  }

  /** Reports the break by an event where one can be inserted. Other clients only see the connection end. */
  breakOff(): void {
    const response = this.#response;
    if (this.#framing === 'chunked' && this.#boundary.isBetweenEvents && response !== undefined && forward.isEventStream(response)) {
      this.#writer.chunk(brokenEventStream, 0, brokenEventStream.length);
    }
    this.#writer.flush();
  }

  /** For WebSocket connections: sends a close frame, unless the replica's last frame is incomplete. */
  sendGoingAway(): void {
    if (!this.#frames.isBetweenFrames) return;
    this.#writer.text(goingAwayFrame);
    this.#writer.flush();
  }

  flush(): boolean {
    return this.#writer.flush();
  }
}
