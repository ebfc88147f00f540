import { Duplex } from 'node:stream';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { openChannels, type ChannelListener, type ChannelSocket } from './channel-socket.ts';
import type { KubeDeps } from './http-exchange.ts';
import type { KubeCallOptions, PodRef } from './kube-api.ts';
import { podPath } from './paths.ts';

/** Kubelets of all versions support it. Newer ones also carry SPDY in a WebSocket, for kubectl. */
const protocols = ['v4.channel.k8s.io'];
const channels = { data: 0, error: 1 } as const;
/** Each channel begins with the port. */
const portBytes = 2;
/** ms. The protocol has no half-close: a caller that ended its side and gets no reply for so long is presumed gone. */
const halfClosedMs = 60_000;

/** Implements `KubeApi.portForward`. */
export async function openPortForward(deps: KubeDeps, pod: PodRef, port: number, { signal }: KubeCallOptions): Promise<Duplex> {
  const act = { verb: 'get', path: `${podPath(pod, 'portforward')}?ports=${port}`, context: deps.context };
  const name = `port ${port} of the pod ${pod.namespace}/${pod.name} in ${deps.context}`;
  return await openChannels(deps, { act, protocols, signal }, (socket) => new PortStream(socket, name, deps.clock));
}

class PortStream extends Duplex implements ChannelListener {
  readonly #socket: ChannelSocket;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #skip = [portBytes, portBytes];
  #fault = '';
  #cancelTimer = (): void => undefined;
  #isHalfClosed = false;

  constructor(socket: ChannelSocket, name: string, clock: Clock) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#name = name;
    this.#clock = clock;
    // The server's refusal may come with its acceptance, before the caller can attach a handler.
    this.on('error', () => undefined);
  }

  onMessage(channel: number, bytes: Buffer): void {
    const skipped = Math.min(this.#skip[channel] ?? bytes.length, bytes.length);
    this.#skip[channel] = (this.#skip[channel] ?? 0) - skipped;
    const rest = bytes.subarray(skipped);
    if (rest.length === 0 || this.destroyed) return;
    if (channel === channels.error) this.#onFault(rest.toString('utf8'));
    else {
      if (this.#isHalfClosed) this.#awaitEnd();
      if (!this.push(rest)) this.#socket.pause();
    }
  }

  onEnd(why: string | undefined): void {
    if (this.destroyed) return;
    if (why === undefined && this.#fault === '') this.push(null);
    else this.destroy(this.#error(this.#fault === '' ? `${why}` : this.#fault));
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.send(channels.data, chunk, (error) => done(error instanceof Error ? this.#error(error.message) : undefined));
  }

  override _final(done: () => void): void {
    this.#isHalfClosed = true;
    this.#awaitEnd();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#cancelTimer();
    this.#socket.close();
    done(error);
  }

  #awaitEnd(): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(halfClosedMs, () => this.destroy());
  }

  /** The server sends its error in one message; the connection ends after it. */
  #onFault(words: string): void {
    this.#fault += words;
    this.destroy(this.#error(this.#fault));
  }

  #error(why: string): SvcError {
    return new SvcError('SVC_KUBERNETES', `The connection to ${this.#name} broke: ${why.trim()}`);
  }
}
