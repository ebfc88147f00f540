import { request as requestHttp, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CancelTimer, Clock } from '../shared/clock.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import type { Fence } from '../shared/fence.ts';
import type { Random } from '../shared/random.ts';
import type { KubeCallOptions } from './kube-api.ts';
import type { KubeAccess, KubeLogin } from './login.ts';

/** One request. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With the query. */
  readonly path: string;
  readonly body?: { readonly type: string; readonly text: string };
}

/** Dependencies of requests to one Kubernetes cluster. */
export interface KubeDeps {
  readonly context: string;
  readonly login: KubeLogin;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly random: Random;
}

type ExchangeDeps = Pick<KubeDeps, 'clock' | 'fence'> & KubeCallOptions;

/** The request got no answer. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
  /** Whether the server may have executed the request. */
  readonly maybeDone: boolean;
  /** Whether the request timed out; connections that seem open may then be dead. */
  readonly tooLate: boolean;

  constructor(cause: unknown, maybeDone: boolean, tooLate = false) {
    super(messageOf(cause) || 'the connection broke', { cause });
    this.maybeDone = maybeDone;
    this.tooLate = tooLate;
  }
}

const connectTimeoutMs = 10_000;
/** From the request to the answer's head. API servers give up after a minute; so long a wait is rarely useful. */
const answerTimeoutMs = 30_000;
/** Limit of a reply, far above a page of 500 of the largest objects in ordinary use. */
const longestReplyBytes = 256 * 1024 * 1024;

/** Resolves to an answer with unread body. Throws UnansweredError, SVC_NOT_LEADER, or the signal's reason. */
export function exchange(access: KubeAccess, asked: KubeRequest, { clock, fence, signal }: ExchangeDeps): Promise<IncomingMessage> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { server } = access;
  const isTls = server.protocol === 'https:';
  const request = (isTls ? requestHttps : requestHttp)({
    method: asked.method,
    hostname: server.hostname.replace(/^\[|\]$/g, ''),
    port: server.port === '' ? (isTls ? 443 : 80) : server.port,
    path: server.pathname.replace(/\/+$/, '') + asked.path,
    headers: {
      accept: 'application/json',
      'user-agent': 'svc',
      ...(asked.body === undefined ? {} : { 'content-type': asked.body.type, 'content-length': Buffer.byteLength(asked.body.text) }),
      ...access.headers,
    },
    ...(access.auth === undefined ? {} : { auth: access.auth }),
    ...access.tls,
    agent: access.agent,
  });
  let wasSent = false;
  let cancelTimer = clock.after(connectTimeoutMs, () => giveUp(`no connection within ${connectTimeoutMs / 1000} s`));
  const giveUp = (why: string): void => {
    reject(new UnansweredError(new Error(why), wasSent, true));
    request.destroy();
  };
  const onAbort = (): void => {
    reject(signal?.reason);
    request.destroy();
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  request.on('error', (error) => reject(new UnansweredError(error, wasSent)));
  request.on('response', (response) => {
    cancelTimer();
    // The listener stays until the response closes: the caller reads the body under the same signal.
    response.once('close', () => signal?.removeEventListener('abort', onAbort));
    resolve(response);
  });
  request.once('close', () => {
    cancelTimer();
    reject(new UnansweredError(new Error('the connection was closed'), wasSent));
  });
  whenConnected(request, () => {
    try {
      fence.check();
    } catch (error) {
      reject(error);
      request.destroy();
      return;
    }
    cancelTimer();
    cancelTimer = clock.after(answerTimeoutMs, () => giveUp(`no answer within ${answerTimeoutMs / 1000} s`));
    wasSent = true;
    request.end(asked.body?.text);
  });
  promise.catch(() => signal?.removeEventListener('abort', onAbort));
  return promise;
}

/**
 * Calls `send` when the connection is open; before, the server has nothing to act on. The fence is checked then: this
 * process may have lost its lease while the connection was opened.
 */
export function whenConnected(request: ClientRequest, send: () => void): void {
  request.once('socket', (socket: Socket) => {
    // A reused connection has finished its handshake.
    if (request.reusedSocket) send();
    else if (socket instanceof TLSSocket) socket.once('secureConnect', send);
    else if (socket.connecting) socket.once('connect', send);
    else send();
  });
}

/** Throws UnansweredError when the body ends early, stalls, or exceeds `longestReplyBytes`. */
export function readBody(response: IncomingMessage, { clock, signal }: ExchangeDeps): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  let length = 0;
  let cancelTimer: CancelTimer | undefined;
  const fail = (error: unknown): void => {
    reject(error);
    response.destroy();
  };
  const wait = (): void => {
    cancelTimer?.();
    cancelTimer = clock.after(answerTimeoutMs, () => fail(new UnansweredError(new Error('the answer stopped in its middle'), true, true)));
  };
  const onAbort = (): void => fail(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  wait();
  response.on('data', (chunk: Buffer) => {
    wait();
    length += chunk.length;
    if (length > longestReplyBytes)
      fail(new SvcError('SVC_KUBERNETES', `An API server sent more than ${longestReplyBytes} bytes for one answer.`));
    else chunks.push(chunk);
  });
  response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
  response.on('error', (error) => reject(new UnansweredError(error, true)));
  response.on('close', () => {
    cancelTimer?.();
    signal?.removeEventListener('abort', onAbort);
    reject(new UnansweredError(new Error('the answer was cut off'), true));
  });
  return promise;
}
