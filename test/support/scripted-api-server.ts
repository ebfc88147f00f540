import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { openKubeApi } from '../../src/kubernetes/contexts.ts';
import type { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { systemClock, type Clock } from '../../src/shared/clock.ts';
import { noFence, type Fence } from '../../src/shared/fence.ts';
import { seededRandom } from '../../src/shared/random.ts';
import { selfSigned } from './certificate.ts';
import { makeTempHome } from './temp-home.ts';

/** A request as the server received it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers requests with any fault that a test needs. */
export type ScriptedAnswer = (request: SeenRequest, response: ServerResponse) => void;

/** Options of a test's API client. */
export interface ScriptedApiOptions {
  readonly fence?: Fence;
  readonly clock?: Clock;
  /** The user's part of the kubeconfig. */
  readonly user?: Readonly<Record<string, unknown>>;
  readonly cluster?: Readonly<Record<string, unknown>>;
}

/**
 * A server of HTTPS and WebSocket like an API server, with scripted replies. For behaviour that a real one shows only
 * when it is broken.
 */
export class ScriptedApiServer {
  /** For the kubeconfig and other files of a test. */
  readonly folder: string;
  readonly seen: SeenRequest[] = [];
  /** WebSockets, by supported protocol. */
  protocols: readonly string[] = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
  onSocket: (socket: WebSocket, url: URL) => void = (socket) => socket.close();
  /** Reply instead of a handshake. */
  refuseSocket: ((request: SeenRequest) => { readonly code: number; readonly body: unknown } | undefined) | undefined;
  /** Handshakes stay unanswered. */
  holdSockets = false;
  readonly #pair = selfSigned();
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  readonly #webSockets: WebSocketServer;
  #answer: ScriptedAnswer;

  private constructor(folder: string, answer: ScriptedAnswer) {
    this.folder = folder;
    this.#answer = answer;
    this.#server = createServer({ key: this.#pair.key, cert: this.#pair.cert }, (request, response) => {
      void this.#onRequest(request, response);
    });
    this.#server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    this.#webSockets = new WebSocketServer({
      noServer: true,
      handleProtocols: (asked) => this.protocols.find((protocol) => asked.has(protocol)) ?? false,
    });
    this.#server.on('upgrade', (request, socket, head) => this.#onUpgrade(request, socket, head));
  }

  /** Creates one for the current test, with a new folder; both end with the test. */
  static async start(answer: ScriptedAnswer = (_request, response) => sendStatus(response, 404, 'NotFound')): Promise<ScriptedApiServer> {
    const server = new ScriptedApiServer(makeTempHome(), answer);
    onTestFinished(async () => {
      await server.stop();
      rmSync(server.folder, { recursive: true, force: true });
    });
    await server.listen(0);
    return server;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  url = '';

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Sets the handler of later requests. */
  answer(answer: ScriptedAnswer): void {
    this.#answer = answer;
  }

  listen(port: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.listen(port, '127.0.0.1', () => {
      const address = this.#server.address();
      if (typeof address === 'object' && address !== null) this.url = `https://127.0.0.1:${address.port}`;
      resolve();
    });
    return promise;
  }

  /** Cuts all connections, and accepts no new ones. */
  async stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.cut();
    await promise;
  }

  cut(): void {
    for (const socket of this.#connections) socket.destroy();
  }

  /** Writes a kubeconfig with the context `test`, and returns its path. */
  writeKubeconfig({ user = { token: 'a-token' }, cluster = {} }: ScriptedApiOptions = {}): string {
    mkdirSync(this.folder, { recursive: true });
    const path = join(this.folder, 'kubeconfig');
    const described = { server: this.url, 'certificate-authority-data': Buffer.from(this.#pair.cert).toString('base64'), ...cluster };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'one', user: 'me' } }],
      clusters: [{ name: 'one', cluster: described }],
      users: [{ name: 'me', user }],
    };
    writeFileSync(path, JSON.stringify(config));
    return path;
  }

  /** Opens the API as the program does. */
  open(options: ScriptedApiOptions = {}): KubeApi {
    const { fence = noFence, clock = systemClock } = options;
    const source = { files: [this.writeKubeconfig(options)], pod: undefined };
    return openKubeApi('test', { fence, clock, random: seededRandom(1), source });
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The client disconnected in the middle of the request: no reply.
    const seen = await seenRequest(request).catch(() => undefined);
    if (seen === undefined) return;
    this.seen.push(seen);
    this.#answer(seen, response);
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Node leaves the socket to the caller after an upgrade. A client that disconnects before its reply is no test
    // failure.
    socket.on('error', () => undefined);
    const seen: SeenRequest = { method: 'GET', url: urlOf(request), headers: request.headers, body: '' };
    this.seen.push(seen);
    const refusal = this.refuseSocket?.(seen);
    if (refusal !== undefined) {
      const body = JSON.stringify(refusal.body);
      socket.end(
        `HTTP/1.1 ${refusal.code} No\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      return;
    }
    if (this.holdSockets) return;
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => this.onSocket(webSocket, seen.url));
  }
}

async function seenRequest(request: IncomingMessage): Promise<SeenRequest> {
  return { method: request.method ?? '', url: urlOf(request), headers: request.headers, body: await text(request) };
}

function urlOf(request: IncomingMessage): URL {
  return new URL(request.url ?? '/', 'https://server');
}

/** Replies with JSON. */
export function sendJson(response: ServerResponse, value: unknown, code = 200, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(value));
}

/** A refusal as Kubernetes sends it. */
export function aStatus(code: number, reason: string, message = `no: ${reason}`): Readonly<Record<string, unknown>> {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}

/** Refuses as Kubernetes does. */
export function sendStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  message?: string,
  headers?: Readonly<Record<string, string>>,
): void {
  sendJson(response, aStatus(code, reason, message), code, headers);
}

/** An object of the kind that tests use. */
export function anObject(name: string, resourceVersion: string): Readonly<Record<string, unknown>> {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion } };
}
