import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { delayMs, type Backoff } from '../shared/backoff.ts';
import type { SvcError } from '../shared/errors.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { openExec } from './exec-stream.ts';
import { exchange, readBody, UnansweredError, type KubeDeps, type KubeRequest } from './http-exchange.ts';
import {
  isKubeObject,
  type KubeApi,
  type KubeCallOptions,
  type KubeDraft,
  type KubeList,
  type KubeListOptions,
  type KubeMergeOptions,
  type KubeObject,
  type KubeRemoval,
  type KubeTrialOptions,
  type KubeWatch,
  type KubeWatchEnd,
  type PodProcess,
  type PodRef,
} from './kube-api.ts';
import {
  isAgainstSchema,
  isDistrusted,
  kubeStatusOf,
  readStatus,
  statusError,
  unansweredError,
  type KubeAct,
  type KubeStatus,
} from './kube-errors.ts';
import { selectionQuery, withQuery } from './paths.ts';
import { openPortForward } from './port-forward-stream.ts';
import { watchOnce } from './watch-stream.ts';

/** `KubeApi` documents the methods. */
export class KubeClient implements KubeApi {
  readonly context: string;
  readonly namespace: string;
  readonly isInside: boolean;
  readonly #deps: KubeDeps;

  constructor({ context, namespace, isInside }: Pick<KubeApi, 'context' | 'namespace' | 'isInside'>, deps: KubeDeps) {
    this.context = context;
    this.namespace = namespace;
    this.isInside = isInside;
    this.#deps = deps;
  }

  async get<T extends KubeObject>(path: string, options: KubeCallOptions = {}): Promise<T | undefined> {
    return await orUndefined([404], this.#object<T>({ verb: 'get', method: 'GET', path, repeat: 'always' }, options));
  }

  /** Page by page; when the continue token has expired, everything in one request. */
  async list<T extends KubeObject>(path: string, options: KubeListOptions<T> = {}): Promise<KubeList<T>> {
    const { keep = (object) => object } = options;
    const items: T[] = [];
    let next = '';
    for (;;) {
      const query = { ...selectionQuery(options), limit: String(pageSize), ...(next === '' ? {} : { continue: next }) };
      const page = await orUndefined([410], this.#page<T>(withQuery(path, query), options));
      if (page === undefined) {
        const { items: all, resourceVersion } = await this.#page<T>(withQuery(path, selectionQuery(options)), options);
        return { items: all.map((item) => keep(item)), resourceVersion };
      }
      for (const item of page.items) items.push(keep(item));
      next = page.next;
      if (next === '') return { items, resourceVersion: page.resourceVersion };
    }
  }

  async apply<T extends KubeObject>(path: string, object: KubeDraft, options: KubeTrialOptions = {}): Promise<T> {
    const query = { fieldManager, force: 'true', ...trialQuery(options) };
    const body = { type: 'application/apply-patch+yaml', text: JSON.stringify(object) };
    return await this.#object<T>({ verb: 'apply', method: 'PATCH', path: withQuery(path, query), body, repeat: 'always' }, options);
  }

  async create<T extends KubeObject>(path: string, object: KubeDraft, options: KubeCallOptions = {}): Promise<T | undefined> {
    return await orUndefined([409], this.#object<T>(writing('create', path, object), options), 'AlreadyExists');
  }

  async replace<T extends KubeObject>(path: string, object: T, options: KubeCallOptions = {}): Promise<T | undefined> {
    return await orUndefined([404, 409], this.#object<T>(writing('update', path, object), options));
  }

  async merge<T extends KubeObject>(path: string, change: unknown, options: KubeMergeOptions = {}): Promise<T | undefined> {
    const kind = options.isStrategic === true ? 'strategic-merge-patch' : 'merge-patch';
    const body = { type: `application/${kind}+json`, text: JSON.stringify(change) };
    const query = { fieldManager, ...trialQuery(options) };
    const asked = { verb: 'patch', method: 'PATCH', path: withQuery(path, query), body, repeat: 'always' } as const;
    return await orUndefined([404], this.#object<T>(asked, options));
  }

  async remove(path: string, options: KubeRemoval = {}): Promise<boolean> {
    const { gracePeriodSeconds, propagation, uid } = options;
    const body = json({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: propagation ?? 'Background',
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(uid === undefined ? {} : { preconditions: { uid } }),
    });
    // 409: another object has the name, so the intended one no longer exists.
    const gone = uid === undefined ? [404] : [404, 409];
    return (await orUndefined(gone, this.#text({ verb: 'delete', method: 'DELETE', path, body, repeat: 'always' }, options))) !== undefined;
  }

  async text(path: string, options: KubeCallOptions & { readonly query?: Readonly<Record<string, string>> } = {}): Promise<string> {
    return await this.#text({ verb: 'get', method: 'GET', path: withQuery(path, options.query ?? {}), repeat: 'always' }, options);
  }

  async watch<T extends KubeObject>(path: string, options: KubeWatch<T>): Promise<KubeWatchEnd> {
    const open = (query: Readonly<Record<string, string>>): Promise<IncomingMessage> => {
      const asked = { verb: 'watch', method: 'GET', path: withQuery(path, query), repeat: 'if-busy' } as const;
      return this.#ask(asked, options, (response) => response);
    };
    return await watchOnce(open, this.#deps, options);
  }

  async exec(pod: PodRef, command: readonly string[], options: Parameters<KubeApi['exec']>[2] = {}): Promise<PodProcess> {
    return await openExec(this.#deps, pod, command, options);
  }

  async portForward(pod: PodRef, port: number, options: KubeCallOptions = {}): Promise<Duplex> {
    return await openPortForward(this.#deps, pod, port, options);
  }

  async #page<T extends KubeObject>(path: string, options: KubeCallOptions): Promise<KubeList<T> & { readonly next: string }> {
    const said = await this.#json({ verb: 'list', method: 'GET', path, repeat: 'always' }, options);
    const { items, metadata } = said;
    const { resourceVersion, continue: next } = isObject(metadata) ? metadata : {};
    return {
      // The server guarantees a kind's fields. `items` is null for an empty list.
      items: (Array.isArray(items) ? items : []) as readonly T[],
      resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
      next: typeof next === 'string' ? next : '',
    };
  }

  async #object<T extends KubeObject>(asked: Asked, options: KubeCallOptions): Promise<T> {
    const said = await this.#json(asked, options);
    if (!isKubeObject<T>(said)) throw nonsense(this.#act(asked));
    return said;
  }

  async #json(asked: Asked, options: KubeCallOptions): Promise<Readonly<Record<string, unknown>>> {
    const said = parseJson(await this.#text(asked, options));
    if (!isObject(said)) throw nonsense(this.#act(asked));
    return said;
  }

  async #text(asked: Asked, options: KubeCallOptions): Promise<string> {
    return await this.#ask(asked, options, (response) => readBody(response, { ...this.#deps, signal: options.signal }));
  }

  /** Returns what `read` makes of a good answer. Logs in again once when the server rejects the credentials. */
  async #ask<T>(asked: Asked, { signal }: KubeCallOptions, read: (response: IncomingMessage) => T | Promise<T>): Promise<T> {
    const { clock, login, random } = this.#deps;
    const act = this.#act(asked);
    let wasRefused = false;
    for (let attempt = 0; ; attempt += 1) {
      let mayRepeat: boolean;
      let pauseMs: number | undefined;
      let error: SvcError;
      try {
        const access = await login.access(signal);
        const response = await exchange(access, asked, { ...this.#deps, signal });
        const code = response.statusCode ?? 0;
        if (code >= 200 && code < 300) return await read(response);
        const status = readStatus(code, await readBody(response, { ...this.#deps, signal }));
        error = statusError(act, status);
        if (code === 401 && !wasRefused) {
          wasRefused = true;
          login.refused(access);
          continue;
        }
        pauseMs = retryAfterMs(response);
        mayRepeat = mayPass(asked, code, status, pauseMs);
      } catch (failure) {
        if (!(failure instanceof UnansweredError)) throw failure;
        // Connections that seem open may be dead: the next requests open new ones.
        if (failure.tooLate) login.forgetConnections();
        error = unansweredError(act, failure);
        mayRepeat = isRepeatable(asked, failure);
      }
      if (!mayRepeat || attempt >= maxRepeats || (pauseMs ?? 0) > longestPauseMs) throw error;
      await clock.sleep(pauseMs ?? delayMs(retry, attempt + 1, random), signal);
      signal?.throwIfAborted();
    }
  }

  #act({ verb, path }: Asked): KubeAct {
    return { verb, path, context: this.context };
  }
}

/**
 * `if-not-done`: repeat only if the server has certainly not executed the request. A second execution would report a
 * false conflict. `if-busy`: repeat only if the server asks for it; the caller has a loop of its own.
 */
type Asked = KubeRequest & { readonly verb: string; readonly repeat: 'always' | 'if-not-done' | 'if-busy' };

const fieldManager = 'svc';
const pageSize = 500;
/** With the delays, about 1.5 s. Callers that need more have their own loop. */
const maxRepeats = 4;
const retry: Backoff = { firstMs: 125, longestMs: 1_000, jitter: 0.5 };
/** When the server asks for a longer delay, the request fails instead of waiting, ms. */
const longestPauseMs = 10_000;

function trialQuery({ dryRun = false }: KubeTrialOptions): Readonly<Record<string, string>> {
  return dryRun ? { dryRun: 'All' } : {};
}

function writing(verb: 'create' | 'update', path: string, object: KubeDraft | KubeObject): Asked {
  const method = verb === 'create' ? 'POST' : 'PUT';
  return { verb, method, path: withQuery(path, { fieldManager }), body: json(object), repeat: 'if-not-done' };
}

function json(value: unknown): { readonly type: string; readonly text: string } {
  return { type: 'application/json', text: JSON.stringify(value) };
}

function nonsense(act: KubeAct): SvcError {
  return unansweredError(act, new Error('what it sent is not what Kubernetes sends'));
}

/** Whether a repeated request may succeed after an error answer. */
function mayPass({ method, repeat }: Asked, code: number, status: KubeStatus, pauseMs: number | undefined): boolean {
  if (repeat === 'if-busy') return (code === 429 || code === 503) && pauseMs !== undefined;
  if (code === 429 || (repeat === 'always' && code >= 500 && !isAgainstSchema(status))) return true;
  // Another client changed an object that the server had to read, such as a quota, so nothing was done. For PUT, a
  // conflict is the answer.
  return status.code === 409 && status.reason === 'Conflict' && ['POST', 'PATCH'].includes(method);
}

/** Whether a request without an answer may be repeated. */
function isRepeatable({ repeat }: Asked, failure: UnansweredError): boolean {
  if (failure.tooLate || isDistrusted(failure)) return false;
  return repeat === 'always' || (repeat === 'if-not-done' && !failure.maybeDone);
}

async function orUndefined<Result>(codes: readonly number[], result: Promise<Result>, reason?: string): Promise<Result | undefined> {
  try {
    return await result;
  } catch (error) {
    const status = kubeStatusOf(error);
    if (status === undefined || !codes.includes(status.code) || (reason !== undefined && status.reason !== reason)) throw error;
    return undefined;
  }
}

function retryAfterMs(response: IncomingMessage): number | undefined {
  const seconds = Number(response.headers['retry-after']);
  return Number.isFinite(seconds) && seconds >= 0 && response.headers['retry-after'] !== undefined ? seconds * 1000 : undefined;
}
