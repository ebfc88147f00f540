import type { RefusalKind, RefusalScope } from '../../domain/placement.ts';
import { SvcError, type ErrorDetails } from '../../shared/errors.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { Offer } from '../provider.ts';

/** `offer`: the machine type in the zone or region. `isCredentialsError`: except for launches, bad credentials. */
export type ErrorMeaning =
  | { readonly kind: RefusalKind; readonly about: RefusalScope | 'offer'; readonly isCredentialsError?: boolean }
  | { readonly kind: 'credentials' | 'failed' };

/** An error as the cloud reported it. */
export interface ReportedError {
  /** The cloud's code; users search for it. */
  readonly code: string;
  /** HTTP status; undefined: there was no response. */
  readonly status: number | undefined;
  readonly text: string;
}

/** The only part of a driver that knows error codes. */
interface ErrorTable {
  /** Undefined for an error that is not the cloud's or of the connection to it. Such errors pass unchanged. */
  read(error: Error): ReportedError | undefined;
  /** `meaningByStatus` serves codes without a row. `status` is undefined for a refusal that arrives late. */
  meaningOf(code: string, status: number | undefined): ErrorMeaning;
  hintFor?(error: ReportedError, meaning: ErrorMeaning): string | undefined;
}

/**
 * The meaning of a code without a row. A caller's fault refuses only this offer, so that a new code does not stop the
 * search. Anything else is a failure, which the caller retries.
 */
export function meaningByStatus(status: number | undefined): ErrorMeaning {
  if (status === 401) return { kind: 'credentials' };
  if (status === 403) return { kind: 'permission', about: 'whole-region' };
  if (status === 429) return { kind: 'throttled', about: 'provider' };
  return status !== undefined && status >= 400 && status < 500 ? { kind: 'unsupported', about: 'offer' } : { kind: 'failed' };
}

const failureCodes = {
  credentials: 'SVC_CREDENTIALS',
  permission: 'SVC_DENIED',
  throttled: 'SVC_THROTTLED',
  capacity: 'SVC_CAPACITY',
} as const;

const maxTextLength = 300;

interface ReadError extends ReportedError {
  readonly meaning: ErrorMeaning;
}

/** Translates a cloud's errors into those that callers of providers know. Other errors pass unchanged. */
export class CloudErrors {
  readonly #title: string;
  readonly #table: ErrorTable;

  constructor(title: string, table: ErrorTable) {
    this.#title = title;
    this.#table = table;
  }

  /** Errors name the attempt (`doing`), as in `list machines in us-east-1`. */
  async guard<T>(doing: string, signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      // SDKs have an error of their own for a cancelled call.
      signal?.throwIfAborted();
      throw this.failureOf(error, doing);
    }
  }

  /** Translates a launch's error into a refusal, which decides how the search continues. */
  refusalOf(error: unknown, offer: Offer): unknown {
    const found = this.#read(error);
    if (found === undefined) return error;
    const { code, meaning, text } = found;
    const location = `${offer.region}${offer.zone === undefined ? '' : ` (zone ${offer.zone})`}`;
    if (!('about' in meaning)) return this.failureOf(error, `launch ${offer.instanceType} in ${location}`);
    const message = `${this.#title} gives no ${offer.instanceType}${offer.spot ? ' as spot' : ''} in ${location}: ${text} (${code})`;
    const scope = meaning.about === 'offer' ? (offer.zone === undefined ? 'region' : 'zone') : meaning.about;
    return new ProviderRefusal(meaning.kind, scope, message, this.#details(found));
  }

  /** Translates the error of any other call. */
  failureOf(error: unknown, doing: string): unknown {
    const found = this.#read(error);
    if (found === undefined) return error;
    const { code, meaning, text } = found;
    const kind = 'isCredentialsError' in meaning && meaning.isCredentialsError ? 'credentials' : meaning.kind;
    const ours = Object.entries(failureCodes).find(([one]) => one === kind)?.[1] ?? 'SVC_PLACE_FAILED';
    return new SvcError(ours, `${this.#title} ${verbOf(found)} ${doing}: ${text} (${code})`, this.#details(found));
  }

  /**
   * Whether an idempotent request may be repeated at once: the cloud did not process it, or did not answer. A capacity
   * error is an answer, whatever its status.
   */
  isWorthRepeating(error: unknown): boolean {
    const found = this.#read(error);
    return found?.meaning.kind === 'throttled' || (found?.meaning.kind === 'failed' && (found.status === undefined || found.status >= 500));
  }

  #read(error: unknown): ReadError | undefined {
    if (error instanceof SvcError || !(error instanceof Error)) return undefined;
    // These are programming errors and cancellations. `fetch` fails with a TypeError, which a client must wrap.
    if (error.name === 'AbortError' || error.name === 'TypeError' || error.name === 'RangeError') return undefined;
    const found = this.#table.read(error);
    if (found === undefined) return undefined;
    return { ...found, text: shortSentence(found.text), meaning: this.#table.meaningOf(found.code, found.status) };
  }

  #details(error: ReadError): ErrorDetails {
    // The cloud's own error may have request headers, which must not be logged.
    const cause = new Error(`${error.code}: ${error.text}`);
    const hint = this.#table.hintFor?.(error, error.meaning);
    return hint === undefined ? { cause } : { cause, hint };
  }
}

/** What a cloud did with a request, before the name of the request: a user must tell a failure from a decision. */
function verbOf({ meaning, status }: Pick<ReadError, 'meaning' | 'status'>): string {
  if (meaning.kind !== 'failed' || (status !== undefined && status < 500)) return 'would not';
  return status === undefined ? 'did not answer a request to' : 'failed to';
}

function shortSentence(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
  if (line === '') return 'no reason given';
  return line.length > maxTextLength ? `${line.slice(0, maxTextLength)}…` : line;
}
