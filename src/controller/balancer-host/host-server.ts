import { EventEmitter } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { createServer as createTlsServer, type Server as TlsServer, type TLSSocket } from 'node:tls';
import type { HostCommand, HostReport } from '../../domain/balancer-host.ts';
import type { Clock } from '../../shared/clock.ts';
import { codeVersion } from '../../shared/code-version.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf } from '../../shared/errors.ts';
import { splitLines } from '../../shared/lines.ts';
import type { Logger } from '../../shared/log.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import { readLogs } from '../logs.ts';
import { readMetrics } from '../read-metrics.ts';
import type { HostedServices } from './hosted-services.ts';
import { Admission, type AdmissionLimits } from './admission.ts';
import { answerProbe } from './probe-answer.ts';
import { readGreeting, readHostCommand } from './read-command.ts';
import { readLine } from './read-line.ts';
import { sharedKeyName, sharedKeyTls } from './shared-key.ts';
import type { TermMemory } from './term-memory.ts';

/** First byte of a TLS record with a handshake. */
const tlsHandshake = 22;
/** Whoever knows the token has to say what for within so long, ms. */
const greetingMs = 5_000;
/** How often a controller is told how the services do, ms: it is the sign of life as well. */
const stateEveryMs = 1_000;
const maxGreetingBytes = 1_024;
/** A set of services with their certificates. */
const maxCommandBytes = 16_777_216;
/** A machine that was lost is found to be gone after some of these, ms. */
const keepAliveMs = 10_000;
/** A controller that does not read is cut rather than remembered for. */
const maxUnreadBytes = 1_048_576;

/** What the server of a balancer host needs. */
export interface HostServerDeps {
  readonly key: Buffer;
  readonly services: HostedServices;
  readonly terms: TermMemory;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether it serves all that it is to serve, and is not about to end. */
  readonly isReady: () => boolean;
  /** Other than those that a host has. */
  readonly limits?: AdmissionLimits;
}

/** The port of a balancer host: commands of controllers over TLS, and probes over plain HTTP. */
export class HostServer {
  readonly #deps: HostServerDeps;
  readonly #server: Server;
  readonly #secure: TlsServer;
  readonly #admission: Admission;
  /** Those that are told how the services do. */
  readonly #told = new Set<TLSSocket>();
  readonly #cancelState: () => void;

  constructor(deps: HostServerDeps) {
    this.#deps = deps;
    this.#admission = new Admission(deps.clock, deps.limits);
    const pskCallback = (_: unknown, identity: string): Buffer | null => (identity === sharedKeyName ? deps.key : null);
    this.#secure = createTlsServer({ ...sharedKeyTls, pskCallback }, (socket) => this.#talk(socket));
    // Somebody without the token, or who went away in the middle: nothing to act on.
    this.#secure.on('tlsClientError', () => undefined);
    this.#server = createServer((socket) => this.#accept(socket));
    this.#cancelState = deps.clock.every(stateEveryMs, () => this.tellState());
  }

  /** Gives the port. Rejects with the system's error. */
  async listen(port: number, host: string): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.on('error', reject);
    this.#server.listen(port, host, resolve);
    await promise;
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  /** Tells all controllers how the services do. */
  tellState(): void {
    for (const socket of this.#told) {
      if (socket.writableLength > maxUnreadBytes) socket.destroy();
      else tell(socket, { type: 'state', services: this.#deps.services.states });
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

  /** With whoever has shown, in the handshake, that it knows the token. */
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
    tell(socket, { type: 'hello', pid: process.pid, version: codeVersion() });
    const command = readHostCommand(await withDeadline(clock, greetingMs, () => readLine(socket, maxCommandBytes), tooLong));
    if (command === undefined) return refuse(socket, 'that is no command');
    if (command.type === 'services') return this.#follow(socket, command);
    const files = this.#deps.services.files(command.key);
    if (files === undefined) return refuse(socket, `it serves no service ${command.key}`);
    return this.#look(socket, command, files);
  }

  /** Sets come one after another over this connection, and how they do goes back. */
  #follow(socket: TLSSocket, first: HostCommand): void {
    const apply = (command: HostCommand | undefined): void => {
      if (command?.type !== 'services') return void socket.destroy();
      this.#deps.services.apply(command.services);
      this.tellState();
    };
    tell(socket, { type: 'ok' });
    this.#told.add(socket);
    socket.on('close', () => this.#told.delete(socket));
    socket.on(
      'data',
      splitLines((line) => apply(readHostCommand(line)), maxCommandBytes),
    );
    apply(first);
  }

  async #look(socket: TLSSocket, command: Exclude<HostCommand, { type: 'services' }>, files: ServicePaths): Promise<void> {
    if (command.type === 'attach') {
      const control = await openControl(files.balancerSocket);
      if (control === undefined) return refuse(socket, 'its balancer does not listen yet');
      tell(socket, { type: 'ok' });
      // Each side reads no faster than the other one does, and both end together. Each pipeline listens for the end in several ways.
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
    tell(socket, { type: 'ok' });
    pipeline(text, socket, () => undefined);
    return undefined;
  }

  #log({ key, tail, follow }: HostCommand & { type: 'log' }, files: ServicePaths, signal: AbortSignal): AsyncIterable<Buffer> {
    const { services, clock } = this.#deps;
    const logs = [files.balancerLog, `${files.accessLog}.1`, files.accessLog];
    const ended = async (): Promise<boolean> => services.files(key) === undefined;
    return readLogs({ files: logs, tail: tail ?? undefined, follow, ended }, clock, signal);
  }
}

const tooLong = (): Error => new Error('it did not say what it wants');

function tell(socket: TLSSocket, report: HostReport): void {
  socket.write(`${JSON.stringify(report)}\n`);
}

function refuse(socket: TLSSocket, reason: string): void {
  tell(socket, { type: 'refused', reason });
  socket.end();
}

/** The control socket of a balancer; undefined while nobody listens there. */
async function openControl(path: string): Promise<Socket | undefined> {
  const control = connect({ path });
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  control.once('connect', () => resolve(control));
  control.on('error', () => resolve(undefined));
  return promise;
}
