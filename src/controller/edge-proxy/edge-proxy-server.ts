import { EventEmitter } from 'node:events';
import { type Server, type Socket, connect, createServer } from 'node:net';
import { Readable, pipeline } from 'node:stream';
import { type TLSSocket, type Server as TlsServer, createServer as createTlsServer } from 'node:tls';
import type { EdgeProxyCommand, EdgeProxyReport } from '../../domain/edge-proxy/edge-proxy.ts';
import { codeVersion } from '../../shared/version.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf } from '../../shared/errors.ts';
import { splitLines } from '../../shared/lines.ts';
import type { Logger } from '../../shared/log.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import { readLogs } from '../logs.ts';
import { readMetrics } from '../read-metrics.ts';
import type { HostedServices } from './hosted-services.ts';
import { Admission, type AdmissionLimits } from './admission.ts';
import { readCommand, readGreeting, readLine } from './read-command.ts';
import { sharedKeyName, sharedKeyTls } from './shared-key.ts';
import type { TermMemory } from './term-memory.ts';
import type { Clock } from '../../shared/clock.ts';

/** First byte of a TLS record with a handshake. */
const tlsHandshake = 22;
/** A client that knows the token must send its command within this time, ms. */
const greetingMs = 5_000;
/** Interval of state reports to controllers, ms. The report is the heartbeat as well. */
const stateEveryMs = 1_000;
const maxGreetingBytes = 1_024;
/** Large enough for a set of services with their certificates. */
const maxCommandBytes = 16_777_216;
/** A lost machine is detected after a few of these intervals, ms. */
const keepAliveMs = 10_000;
/** Buffer limit per controller, bytes. A controller that does not read is disconnected. */
const maxUnreadBytes = 1_048_576;

interface EdgeProxyServerDeps extends ProbeAnswerDeps {
  readonly key: Buffer;
  readonly services: HostedServices;
  readonly terms: TermMemory;
  readonly log: Logger;
  readonly limits?: AdmissionLimits;
}

/** The port of an edge proxy: commands of controllers over TLS, and probes over plain HTTP. */
export class EdgeProxyServer {
  readonly #deps: EdgeProxyServerDeps;
  readonly #server: Server;
  readonly #secure: TlsServer;
  readonly #admission: Admission;
  /** Controllers that receive state reports. */
  readonly #subscribers = new Set<TLSSocket>();
  readonly #cancelState: () => void;

  constructor(deps: EdgeProxyServerDeps) {
    this.#deps = deps;
    this.#admission = new Admission(deps.clock, deps.limits);
    const pskCallback = (_: unknown, identity: string): Buffer | null => (identity === sharedKeyName ? deps.key : null);
    this.#secure = createTlsServer({ ...sharedKeyTls, pskCallback }, (socket) => this.#talk(socket));
    // A client without the token, or one that disconnected during the handshake, needs no action.
    this.#secure.on('tlsClientError', () => undefined);
    this.#server = createServer((socket) => this.#accept(socket));
    this.#cancelState = deps.clock.every(stateEveryMs, () => this.reportState());
  }

  /** Returns the port. Rejects with the system's error. */
  async listen(port: number, host: string): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.on('error', reject);
    this.#server.listen(port, host, resolve);
    await promise;
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  reportState(): void {
    for (const socket of this.#subscribers) {
      if (socket.writableLength > maxUnreadBytes) socket.destroy();
      else sendReport(socket, { type: 'state', services: this.#deps.services.states });
    }
  }

  close(): void {
    this.#cancelState();
    this.#server.close();
    this.#admission.close();
  }

  #accept(socket: Socket): void {
    this.#admission.enter(socket);
    socket.on('error', () => undefined);
    socket.setNoDelay(true);
    socket.once('data', (first) => {
      socket.pause();
      socket.unshift(first);
      if (first[0] === tlsHandshake) this.#secure.emit('connection', socket);
      else void answerProbe(socket, this.#deps).catch(() => socket.destroy());
    });
  }

  /** Serves a client whose handshake proved that it knows the token. */
  #talk(socket: TLSSocket): void {
    socket.on('error', () => undefined);
    if (!this.#admission.recognise(socket)) return void socket.destroy();
    socket.setKeepAlive(true, keepAliveMs);
    void this.#serve(socket).catch((error: unknown) => {
      if (!socket.destroyed) this.#deps.log.info({ reason: messageOf(error) }, 'a connection of a controller ended early');
      socket.destroy();
    });
  }

  async #serve(socket: TLSSocket): Promise<void> {
    const { clock, terms } = this.#deps;
    const greeting = readGreeting(await withDeadline(clock, greetingMs, () => readLine(socket, maxGreetingBytes), tooLong));
    if (greeting === undefined) return refuse(socket, 'that is no greeting');
    if (!terms.accept(greeting.term, socket)) return refuse(socket, `a controller with term ${terms.newest} leads by now`);
    sendReport(socket, { type: 'hello', pid: process.pid, version: codeVersion() });
    const command = readCommand(await withDeadline(clock, greetingMs, () => readLine(socket, maxCommandBytes), tooLong));
    if (command === undefined) return refuse(socket, 'that is no command');
    if (command.type === 'services') return this.#follow(socket, command);
    const files = this.#deps.services.files(command.key);
    if (files === undefined) return refuse(socket, `it serves no service ${command.key}`);
    return this.#respond(socket, command, files);
  }

  /** Receives sets of services over this connection, and sends state reports back. */
  #follow(socket: TLSSocket, first: EdgeProxyCommand): void {
    const apply = (command: EdgeProxyCommand | undefined): void => {
      if (command?.type !== 'services') return void socket.destroy();
      this.#deps.services.apply(command.services);
      this.reportState();
    };
    sendReport(socket, { type: 'ok' });
    this.#subscribers.add(socket);
    socket.on('close', () => this.#subscribers.delete(socket));
    socket.on(
      'data',
      splitLines((line) => apply(readCommand(line)), maxCommandBytes),
    );
    apply(first);
  }

  async #respond(socket: TLSSocket, command: Exclude<EdgeProxyCommand, { type: 'services' }>, files: ServicePaths): Promise<void> {
    if (command.type === 'attach') {
      const control = await openControl(files.balancerSocket);
      if (control === undefined) return refuse(socket, 'its balancer does not listen yet');
      sendReport(socket, { type: 'ok' });
      // Each side reads no faster than the other, and both end together. Each pipeline adds several end listeners.
      socket.setMaxListeners(2 * EventEmitter.defaultMaxListeners);
      pipeline(socket, control, () => socket.destroy());
      pipeline(control, socket, () => control.destroy());
      return undefined;
    }
    const gone = new AbortController();
    socket.on('close', () => gone.abort());
    const text =
      command.type === 'metrics'
        ? Readable.from([await readMetrics(command.key, files.metricsSocket, gone.signal)])
        : Readable.from(this.#log(command, files, gone.signal), { objectMode: false });
    sendReport(socket, { type: 'ok' });
    pipeline(text, socket, () => undefined);
    return undefined;
  }

  #log({ key, tail, follow }: EdgeProxyCommand & { type: 'log' }, files: ServicePaths, signal: AbortSignal): AsyncIterable<Buffer> {
    const { services, clock } = this.#deps;
    const logs = [files.balancerLog, `${files.accessLog}.1`, files.accessLog];
    const ended = async (): Promise<boolean> => services.files(key) === undefined;
    return readLogs({ files: logs, tail: tail ?? undefined, follow, ended }, clock, signal);
  }
}

const tooLong = (): Error => new Error('it did not say what it wants');

function sendReport(socket: TLSSocket, report: EdgeProxyReport): void {
  socket.write(`${JSON.stringify(report)}\n`);
}

function refuse(socket: TLSSocket, reason: string): void {
  sendReport(socket, { type: 'refused', reason });
  socket.end();
}

async function openControl(path: string): Promise<Socket | undefined> {
  const control = connect({ path });
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  control.once('connect', () => resolve(control));
  control.on('error', () => resolve(undefined));
  return promise;
}

const probeMs = 2_000;
const maxHeadBytes = 8_192;

interface ProbeAnswerDeps {
  readonly clock: Clock;
  /** Whether requests may be sent to this edge proxy, as its readiness probe reports. */
  readonly isReady: () => boolean;
}

/**
 * Answers `GET /healthz` (this process is not stuck) and `GET /readyz` (it serves). Implements only the HTTP that
 * probes and other edge proxies need: one request per connection, without a body.
 */
async function answerProbe(socket: Socket, { clock, isReady }: ProbeAnswerDeps): Promise<void> {
  const first = await withDeadline(
    clock,
    probeMs,
    () => readHead(socket),
    () => new Error('the request did not come in time'),
  );
  const path = /^GET (\/healthz|\/readyz) HTTP\/1\.[01]\r?$/.exec(first)?.[1];
  const isWell = path === '/healthz' || (path === '/readyz' && isReady());
  const status = path === undefined ? '404 Not Found' : isWell ? '200 OK' : '503 Service Unavailable';
  const body = path === undefined ? 'unknown\n' : isWell ? 'ok\n' : 'not ready\n';
  socket.end(`HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
}

/** The first line of a request, once the whole head has arrived. */
async function readHead(socket: Socket): Promise<string> {
  const first = await readLine(socket, maxHeadBytes);
  let left = maxHeadBytes - first.length;
  for (;;) {
    const line = (await readLine(socket, left)).trim();
    if (line === '') return first;
    left -= line.length + 1;
  }
}
