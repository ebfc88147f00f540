import type { IncomingMessage } from 'node:http';
import type { Clock } from '../shared/clock.ts';
import { type ErrorReply, SvcError, hasErrno, messageOf } from '../shared/errors.ts';
import { type RouteName, apiVersion, apiVersionHeader, routes, svcVersionHeader, versionlessRoutes } from './routes.ts';
import { type ErrorCode, errorCodes } from '../shared/error-codes.ts';

type Texts = Readonly<Record<string, string | number | boolean | undefined>>;

/** One API call as the client sends it. */
export interface WireCall {
  readonly name: RouteName;
  readonly params?: Texts;
  readonly query?: Texts;
  readonly body?: unknown;
  readonly socketPath: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A reply whose head has arrived and reports success. */
export interface Exchange {
  readonly response: IncomingMessage;
  /** Ends the timeout: from here on the reply may take any time. */
  stopTimer(): void;
  /** Converts an error while reading the reply into the error to throw. */
  explain(error: unknown): unknown;
}

/** The cause of a call's error when no answer came in its time. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
}

/** Sends a call. Rejects with the same errors as the methods of `ApiClient`. */
export async function openExchange(call: WireCall): Promise<Exchange> {
  const { name, socketPath, clock, timeoutMs, signal } = call;
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  // Importing node:http as an ES module reads all its exports, one of which loads undici: 45 ms against 5 ms.
  const http = process.getBuiltinModule('node:http');
  const request = http.request({
    socketPath,
    method: routes[name].method,
    path: pathOf(call),
    headers: {
      host: 'controller',
      [apiVersionHeader]: apiVersion,
      ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    },
    // One connection for each call: a pooled connection may belong to a controller that has been replaced.
    agent: false,
    ...(signal !== undefined && { signal }),
  });

  let timedOut = false;
  const stopTimer = clock.after(timeoutMs, () => {
    timedOut = true;
    // Without an error of its own, a timeout would look as if the controller had closed the connection.
    request.destroy(new NoAnswerError());
  });
  const explain = (error: unknown): unknown => {
    if (error instanceof SvcError) return error;
    if (signal?.aborted === true) return signal.reason;
    const problem = timedOut ? `did not answer "${name}" within ${timeoutMs / 1_000} s` : describe(error);
    return new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller at ${socketPath} ${problem}.`, { cause: error });
  };

  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve);
      request.on('error', reject);
      request.end(body);
    });
    await checkHead(name, response);
    return { response, stopTimer, explain };
  } catch (error) {
    stopTimer();
    request.destroy();
    throw explain(error);
  }
}

/** The whole text of a reply. */
export async function readText(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) text += String(chunk);
  return text;
}

function pathOf({ name, params = {}, query = {} }: WireCall): string {
  const path = routes[name].path.replaceAll(/:(\w+)/g, (_, key: string) => encodeURIComponent(String(params[key] ?? '')));
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value));
  return search.size === 0 ? path : `${path}?${search.toString()}`;
}

/** Throws the error that the reply reports, or SVC_VERSION_MISMATCH. */
async function checkHead(name: RouteName, response: IncomingMessage): Promise<void> {
  const spoken = response.headers[apiVersionHeader];
  if (spoken !== String(apiVersion) && !versionlessRoutes.includes(name)) {
    const theirs = `${String(response.headers[svcVersionHeader] ?? 'unknown')}, API ${String(spoken ?? 'unknown')}`;
    throw new SvcError(
      'SVC_VERSION_MISMATCH',
      `The running controller is of another version (${theirs}) than this command (API ${apiVersion}).`,
    );
  }
  const status = response.statusCode ?? 0;
  if (status < 400) return;
  const text = await readText(response);
  let reply: unknown;
  try {
    reply = JSON.parse(text);
  } catch {
    // The reply is not from an svc controller: reported below.
  }
  throw isErrorReply(reply) ? toSvcError(reply) : new Error(`it answered with status ${status} and no reason`);
}

/** The text follows the controller's name in a message. */
function describe(error: unknown): string {
  if (hasErrno(error, 'ENOENT', 'ECONNREFUSED')) return 'does not run';
  if (hasErrno(error, 'ECONNRESET', 'EPIPE')) return 'went away before its answer was complete';
  return `cannot be understood: ${messageOf(error)}`;
}

/** Whether a parsed reply, or a line of one, is an error. */
export function isErrorReply(value: unknown): value is ErrorReply {
  if (typeof value !== 'object' || value === null || !('error' in value)) return false;
  const { error } = value;
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' && 'message' in error;
}

/** The controller's error. An unknown code, as from a newer controller, becomes SVC_INTERNAL. */
export function toSvcError({ error }: ErrorReply): SvcError {
  const { message, hint, problems } = error;
  const code: string = error.code;
  if (!isKnown(code)) return new SvcError('SVC_INTERNAL', `${message} (${code})`, { hint });
  return new SvcError(code, message, { hint, problems });
}

function isKnown(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code);
}
