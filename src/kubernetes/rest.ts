import type { IncomingMessage } from 'node:http';
import { delayMs, type Backoff } from '../shared/backoff.ts';
import type { Clock } from '../shared/clock.ts';
import type { SvcError } from '../shared/errors.ts';
import type { Fence } from '../shared/fence.ts';
import { isObject } from '../shared/is-object.ts';
import { parseJson } from '../shared/parse-json.ts';
import type { Random } from '../shared/random.ts';
import { exchange, readBody, UnansweredError, type ExchangeDeps, type KubeRequest } from './http-exchange.ts';
import type {
  KubeCallOptions,
  KubeDraft,
  KubeList,
  KubeListOptions,
  KubeObject,
  KubeRemoval,
  KubeSelection,
  KubeTrialOptions,
} from './kube-api.ts';
import { isKubeObject } from './kube-object.ts';
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
import type { KubeAccess, KubeLogin } from './login.ts';

/** Dependencies of requests to one Kubernetes cluster. */
export interface RestDeps {
  readonly context: string;
  readonly login: KubeLogin;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly random: Random;
}

/** Requests with one answer each; the other methods of `KubeApi` are streams. */
export class KubeRest {
  readonly #deps: RestDeps;

  constructor(deps: RestDeps) {
    this.#deps = deps;
  }

  async get<T extends KubeObject>(path: string, options: KubeCallOptions = {}): Promise<T | undefined> {
    return await orUndefined([404], this.#object<T>({ verb: 'get', method: 'GET', path, repeat: 'always' }, options));
  }

  /** Lists page by page. When the continue token has expired, lists everything in one request. */
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

  async merge<T extends KubeObject>(path: string, change: unknown, options: KubeTrialOptions = {}): Promise<T | undefined> {
    const body = { type: 'application/merge-patch+json', text: JSON.stringify(change) };
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
    // A conflict means another object of the same name: the intended one no longer exists.
    const gone = uid === undefined ? [404] : [404, 409];
    return (await orUndefined(gone, this.#text({ verb: 'delete', method: 'DELETE', path, body, repeat: 'always' }, options))) !== undefined;
  }

  async text(path: string, options: KubeCallOptions & { readonly query?: Readonly<Record<string, string>> } = {}): Promise<string> {
    return await this.#text({ verb: 'get', method: 'GET', path: withQuery(path, options.query ?? {}), repeat: 'always' }, options);
  }

  /** Open connections may be dead: the next requests open new ones. */
  forgetConnections(): void {
    this.#deps.login.forgetConnections();
  }

  /**
   * The head of an answer with a long body. Logs in again once when the server rejects the credentials. Retries after
   * `Retry-After` when the server is busy.
   */
  async open(asked: KubeRequest & { readonly verb: string }, options: KubeCallOptions): Promise<IncomingMessage> {
    const { login } = this.#deps;
    const act = this.#act(asked);
    let wasRefused = false;
    for (let attempt = 0; ; attempt += 1) {
      let access: KubeAccess;
      let response: IncomingMessage;
      try {
        access = await login.access(options.signal);
        response = await exchange(access, asked, this.#exchangeDeps(options));
      } catch (error) {
        if (error instanceof UnansweredError && error.tooLate) this.forgetConnections();
        throw this.#known(act, error);
      }
      if (response.statusCode === 200) return response;
      const error = statusError(act, await this.#status(response, options, act));
      if (response.statusCode === 401 && !wasRefused) {
        wasRefused = true;
        login.refused(access);
        continue;
      }
      const pauseMs = retryAfterMs(response);
      const isBusy = response.statusCode === 429 || response.statusCode === 503;
      if (!isBusy || pauseMs === undefined || pauseMs > longestPauseMs || attempt >= maxRepeats) throw error;
      await this.#deps.clock.sleep(pauseMs, options.signal);
      options.signal?.throwIfAborted();
    }
  }

  async #page<T extends KubeObject>(path: string, options: KubeCallOptions): Promise<KubeList<T> & { readonly next: string }> {
    const said = await this.#json({ verb: 'list', method: 'GET', path, repeat: 'always' }, options);
    const { items, metadata } = said;
    const { resourceVersion, continue: next } = isObject(metadata) ? metadata : {};
    return {
      // The server guarantees the fields of a kind; `items` is null when the list is empty.
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
    const { login } = this.#deps;
    const act = this.#act(asked);
    let wasRefused = false;
    for (let attempt = 0; ; attempt += 1) {
      let mayRepeat = attempt < maxRepeats;
      let pauseMs: number | undefined;
      let error: unknown;
      try {
        const access = await login.access(options.signal);
        const response = await exchange(access, asked, this.#exchangeDeps(options));
        const code = response.statusCode ?? 0;
        const body = await readBody(response, this.#exchangeDeps(options));
        if (code >= 200 && code < 300) return body;
        const status = readStatus(code, body);
        error = statusError(act, status);
        if (code === 401 && !wasRefused) {
          wasRefused = true;
          login.refused(access);
          continue;
        }
        mayRepeat &&= code === 429 || (asked.repeat === 'always' && code >= 500 && !isAgainstSchema(status)) || isRace(asked, status);
        pauseMs = retryAfterMs(response);
      } catch (failure) {
        if (failure instanceof UnansweredError && failure.tooLate) this.forgetConnections();
        mayRepeat &&=
          failure instanceof UnansweredError &&
          !failure.tooLate &&
          !isDistrusted(failure) &&
          (!failure.maybeDone || asked.repeat === 'always');
        error = this.#known(act, failure);
      }
      if (!mayRepeat || (pauseMs ?? 0) > longestPauseMs) throw error;
      await this.#deps.clock.sleep(pauseMs ?? delayMs(retry, attempt + 1, this.#deps.random), options.signal);
      options.signal?.throwIfAborted();
    }
  }

  async #status(response: IncomingMessage, options: KubeCallOptions, act: KubeAct): Promise<KubeStatus> {
    try {
      return readStatus(response.statusCode ?? 0, await readBody(response, this.#exchangeDeps(options)));
    } catch (error) {
      throw this.#known(act, error);
    }
  }

  #known(act: KubeAct, failure: unknown): unknown {
    return failure instanceof UnansweredError ? unansweredError(act, failure) : failure;
  }

  #act(asked: KubeRequest & { readonly verb: string }): KubeAct {
    return { verb: asked.verb, path: asked.path, context: this.#deps.context };
  }

  #exchangeDeps(options: KubeCallOptions): ExchangeDeps {
    return { clock: this.#deps.clock, fence: this.#deps.fence, signal: options.signal };
  }
}

/**
 * `if-not-done`: repeat only when the server has certainly not executed it. A second execution would report a false
 * conflict with another client.
 */
type Asked = KubeRequest & { readonly verb: string; readonly repeat: 'always' | 'if-not-done' };

const fieldManager = 'svc';
const pageSize = 500;
/** About a second and a half with the delays between them. Callers that need more have a loop of their own. */
const maxRepeats = 4;
const retry: Backoff = { firstMs: 125, longestMs: 1_000, jitter: 0.5 };
/** When the server asks for a longer delay, the request fails with its error instead of waiting. */
const longestPauseMs = 10_000;

/** Adds parameters to a path. */
export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`;
}

/** The query parameters that select objects of a collection. */
export function selectionQuery({ labels = {}, labelSelector, fieldSelector }: KubeSelection): Readonly<Record<string, string>> {
  const parts = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  if (labelSelector !== undefined && labelSelector !== '') parts.push(labelSelector);
  return {
    ...(parts.length === 0 ? {} : { labelSelector: parts.join(',') }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
}

function trialQuery({ dryRun = false }: KubeTrialOptions): Readonly<Record<string, string>> {
  return dryRun ? { dryRun: 'All' } : {};
}

/** A request that creates or replaces a whole object. */
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

/**
 * Another client changed an object that the server itself had to read, such as a quota: nothing was done. For a
 * replacement (PUT), a conflict is the answer.
 */
function isRace(asked: Asked, status: KubeStatus): boolean {
  return status.code === 409 && status.reason === 'Conflict' && ['POST', 'PATCH'].includes(asked.method);
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
