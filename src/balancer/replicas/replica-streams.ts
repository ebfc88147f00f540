import type { ReplicaProtocol } from '../../domain/task.ts';
import type { CancelDial, DialError } from '../../shared/system/dial.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { isGrpc } from '../http1/grpc-request.ts';
import { Http2Sessions } from '../http2/http2-sessions.ts';
import { ReplicaPool, type ReplicaServices } from './replica-pool.ts';
import type { ReplicaStream } from './replica-stream.ts';

/** Gets a stream, or the error. */
export type OnDialled = (error: DialError | undefined, stream: ReplicaStream | undefined) => void;

/**
 * The streams to one replica. `auto`: HTTP/1.1, as nearly all programs use it. Only gRPC needs HTTP/2, so the first
 * gRPC request makes the balancer test whether the replica speaks it.
 */
export class ReplicaStreams {
  readonly #address: ReplicaAddress;
  readonly #protocol: ReplicaProtocol;
  readonly #services: ReplicaServices;
  readonly #http1: ReplicaPool;
  #http2: Http2Sessions | undefined;
  #isHttp1Only = false;
  #isClosed = false;

  constructor(address: ReplicaAddress, services: ReplicaServices) {
    this.#address = address;
    this.#protocol = services.protocol;
    this.#services = services;
    this.#http1 = new ReplicaPool(address, services);
  }

  /** An HTTP/1.1 connection is being opened or has not answered yet. */
  get hasFresh(): boolean {
    return this.#http1.hasFresh;
  }

  /** A stream over an open connection; undefined when none may carry it. `mayRunTwice`: see `ReplicaPool.take`. */
  take(head: RequestHead, mayRunTwice: boolean): ReplicaStream | undefined {
    return this.#usesHttp2(head) ? this.#sessions().take() : this.#http1.take(mayRunTwice);
  }

  /** A stream over a new connection; calls `done` later. */
  dial(head: RequestHead, done: OnDialled): CancelDial {
    if (!this.#usesHttp2(head)) return this.#http1.dial(done);
    let cancel = this.#sessions().dial((error, stream) => {
      const isRefusal = this.#protocol === 'auto' && error?.code === 'EPROTO';
      if (!isRefusal) return done(error, stream);
      this.#isHttp1Only = true;
      cancel = this.#http1.dial(done);
      return undefined;
    });
    return () => cancel();
  }

  /** Closes one connection that no request uses; false when there is none. */
  closeIdle(): boolean {
    return this.#http1.closeIdle() || this.#http2?.closeIdle() === true;
  }

  /** Closes idle connections now, and others as they become idle. Running requests continue. */
  close(): void {
    this.#isClosed = true;
    this.#http1.close();
    this.#http2?.close();
  }

  reopen(): void {
    this.#isClosed = false;
    this.#http1.reopen();
    this.#http2?.reopen();
  }

  #usesHttp2(head: RequestHead): boolean {
    if (this.#protocol === 'auto') return !this.#isHttp1Only && isGrpc(head);
    return this.#protocol === 'h2c';
  }

  #sessions(): Http2Sessions {
    if (this.#http2 === undefined) {
      this.#http2 = new Http2Sessions(this.#address, this.#services);
      if (this.#isClosed) this.#http2.close();
    }
    return this.#http2;
  }
}
