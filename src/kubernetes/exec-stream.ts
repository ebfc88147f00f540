import { Duplex, Readable } from 'node:stream';
import { isObject, parseJson } from '../shared/json.ts';
import { openChannels, type ChannelListener, type ChannelSocket } from './channel-socket.ts';
import type { KubeDeps } from './http-exchange.ts';
import type { KubeCallOptions, PodProcess, PodRef } from './kube-api.ts';
import { statusOfObject } from './kube-errors.ts';
import { podPath } from './paths.ts';

/** With version 5 a client can close the input. API servers before 1.30 choose 4. */
const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
const channels = { stdin: 0, stdout: 1, stderr: 2, status: 3, close: 255 } as const;
/** Lets stdout continue when the caller reads stderr late: both share one connection. */
const stderrBufferBytes = 1024 * 1024;

type Ended = Awaited<PodProcess['ended']>;

/** Implements `KubeApi.exec`. */
export async function openExec(
  deps: KubeDeps,
  pod: PodRef,
  command: readonly string[],
  { stdin = false, signal }: KubeCallOptions & { readonly stdin?: boolean },
): Promise<PodProcess> {
  const query = new URLSearchParams();
  for (const word of command) query.append('command', word);
  if (pod.container !== undefined) query.set('container', pod.container);
  query.set('stdin', String(stdin));
  query.set('stdout', 'true');
  query.set('stderr', 'true');
  const act = { verb: 'get', path: `${podPath(pod, 'exec')}?${query.toString()}`, context: deps.context };
  return await openChannels(deps, { act, protocols, signal }, (socket) => new ExecStreams(socket, stdin));
}

class ExecStreams implements PodProcess, ChannelListener {
  readonly stdio: Duplex;
  readonly stderr: Readable;
  readonly ended: Promise<Ended>;
  readonly canCloseInput: boolean;
  readonly #socket: ChannelSocket;
  #end: (ended: Ended) => void;
  #isOver = false;
  #isOutputFull = false;
  #isStderrFull = false;
  #status = '';

  constructor(socket: ChannelSocket, hasInput: boolean) {
    this.#socket = socket;
    this.canCloseInput = hasInput && socket.protocol === protocols[0];
    const { promise, resolve } = Promise.withResolvers<Ended>();
    this.ended = promise;
    this.#end = resolve;
    this.stdio = new Duplex({
      allowHalfOpen: false,
      read: () => {
        this.#isOutputFull = false;
        this.#flow();
      },
      write: (chunk: Buffer, _encoding, done) => this.#write(chunk, done),
      final: (done) => this.#closeInput(done),
      destroy: (error, done) => {
        this.#close('the connection was closed here');
        done(error);
      },
    });
    this.stderr = new Readable({
      highWaterMark: stderrBufferBytes,
      read: () => {
        this.#isStderrFull = false;
        this.#flow();
      },
    });
  }

  holdProcess(isHeld: boolean): void {
    this.#socket.holdProcess(isHeld);
  }

  close(): void {
    this.#close('the connection was closed here');
    this.stdio.destroy();
  }

  onMessage(channel: number, bytes: Buffer): void {
    if (this.#isOver) return;
    if (channel === channels.stdout && bytes.length > 0) this.#isOutputFull = !this.stdio.push(bytes);
    else if (channel === channels.stderr && bytes.length > 0) this.#isStderrFull = !this.stderr.push(bytes);
    else if (channel === channels.status) this.#onStatus(bytes.toString('utf8'));
    this.#flow();
  }

  onEnd(why: string | undefined): void {
    if (!this.#isOver) this.#finish({ exitCode: undefined, message: why ?? 'the connection ended before the command did' });
  }

  /** Kubernetes sends the status after all output. */
  #onStatus(text: string): void {
    this.#status += text;
    const said = parseJson(this.#status);
    if (!isObject(said)) return;
    const status = statusOfObject(said, 0);
    if (said['status'] === 'Success') this.#finish({ exitCode: 0, message: undefined });
    else {
      const code = status.causes.find((cause) => cause.reason === 'ExitCode')?.message;
      this.#finish({ exitCode: code !== undefined && /^\d+$/.test(code) ? Number(code) : undefined, message: status.message });
    }
    this.#socket.close();
  }

  #write(chunk: Buffer, done: (error?: Error | null) => void): void {
    // No error: the caller learns of the command's end from `ended`.
    if (this.#isOver) done();
    else this.#socket.send(channels.stdin, chunk, () => done());
  }

  #closeInput(done: () => void): void {
    if (this.#isOver || this.#socket.protocol !== protocols[0]) done();
    else this.#socket.send(channels.close, Uint8Array.of(channels.stdin), () => done());
  }

  #flow(): void {
    if (this.#isOver) return;
    if (this.#isOutputFull || this.#isStderrFull) this.#socket.pause();
    else this.#socket.resume();
  }

  #finish(ended: Ended): void {
    this.#isOver = true;
    this.stdio.push(null);
    this.stderr.push(null);
    this.#end(ended);
  }

  #close(message: string): void {
    this.#socket.close();
    if (!this.#isOver) this.#finish({ exitCode: undefined, message });
  }
}
