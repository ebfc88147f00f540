import type { IncomingMessage } from 'node:http';
import type { Clock } from '../shared/clock.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import { isErrorReply, toSvcError } from './client-errors.ts';
import { apiVersion, apiVersionHeader, routes, svcVersionHeader, versionlessRoutes, type RouteName } from './routes.ts';

/** Parts of a request that travel as text. */
type Texts = Readonly<Record<string, string | number | boolean | undefined>>;

/** A call as it goes over the wire. */
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

/** A reply whose head has come and tells of success. */
export interface Exchange {
  readonly response: IncomingMessage;
  /** From here on the reply may take as long as it likes. */
  stopTimer(): void;
  /** The error to throw for one that came up while reading the reply. */
  explain(error: unknown): unknown;
}

/** Sends a call. Rejects like a method of `ApiClient`. */
export async function openExchange(call: WireCall): Promise<Exchange> {
  const { name, socketPath, clock, timeoutMs, signal } = call;
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  // Importing node:http as an ES module would read all its exports, one of which loads undici: 45 ms against 5, for each command of the CLI.
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
    // A connection for each call: a kept one may have gone away with a controller that was replaced.
    agent: false,
    ...(signal !== undefined && { signal }),
  });

  let timedOut = false;
  const stopTimer = clock.after(timeoutMs, () => {
    timedOut = true;
    // Without an error of its own it would look as if the controller had ended the connection.
    request.destroy(new Error('no answer in time'));
  });
  const explain = (error: unknown): unknown => {
    if (error instanceof SvcError) return error;
    if (signal?.aborted === true) return signal.reason;
    const happened = timedOut ? `did not answer "${name}" within ${timeoutMs / 1_000} s` : describe(error);
    return new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller at ${socketPath} ${happened}.`, { cause: error });
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

/** Throws the error that the reply tells of, or SVC_VERSION_MISMATCH. */
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
    // Not from a controller of ours: reported below.
  }
  throw isErrorReply(reply) ? toSvcError(reply) : new Error(`it gave status ${status} and no reason`);
}

/** What happened to the controller, to follow its name. */
function describe(error: unknown): string {
  if (hasErrno(error, 'ENOENT', 'ECONNREFUSED')) return 'does not run';
  if (hasErrno(error, 'ECONNRESET', 'EPIPE')) return 'went away before its answer was complete';
  return `cannot be understood: ${messageOf(error)}`;
}
