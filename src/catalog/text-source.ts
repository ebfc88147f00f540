import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { messageOf, SvcError } from '../shared/errors.ts';

/** Options of a download. */
export interface FetchOptions {
  readonly signal: AbortSignal;
}

interface TextSource {
  readonly lines: AsyncIterable<string>;
  /** ms since the epoch, if the server or the file system reports it. */
  readonly modifiedAt: number | undefined;
}

/** Whether a location is fetched over the network. */
export function isUrl(location: string): boolean {
  return /^https?:\/\//i.test(location);
}

/** A location that is safe to show and store: without user name, password and query, which may be secrets. */
export function shownLocation(location: string): string {
  if (!isUrl(location) || !URL.canParse(location)) return location;
  const { protocol, host, pathname } = new URL(location);
  return `${protocol}//${host}${pathname}`;
}

/** Opens a URL or a file. Throws SVC_CATALOG. `fetch` itself aborts when a server stalls for five minutes. */
export async function openText(location: string, { signal }: FetchOptions): Promise<TextSource> {
  try {
    return isUrl(location) ? await openUrl(location, signal) : await openFile(location, signal);
  } catch (error) {
    throw asCatalogError(error, location);
  }
}

/** Reads a short text. Throws as `openText` does. */
export async function readText(location: string, options: FetchOptions): Promise<string> {
  const lines: string[] = [];
  for await (const line of (await openText(location, options)).lines) lines.push(line);
  return lines.join('\n');
}

async function openUrl(url: string, signal: AbortSignal): Promise<TextSource> {
  const response = await fetch(url, { signal });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new SvcError('SVC_CATALOG', `${shownLocation(url)} answered with HTTP ${response.status}.`, {
      hint: 'Check the address, and that it can be reached from here.',
    });
  }
  const modifiedAt = Date.parse(response.headers.get('last-modified') ?? '');
  return { lines: linesOf(Readable.fromWeb(response.body), url), modifiedAt: Number.isNaN(modifiedAt) ? undefined : modifiedAt };
}

async function openFile(path: string, signal: AbortSignal): Promise<TextSource> {
  const { mtimeMs } = await stat(path);
  return { lines: linesOf(createReadStream(path, { signal }), path), modifiedAt: mtimeMs };
}

async function* linesOf(stream: Readable, location: string): AsyncGenerator<string> {
  try {
    yield* createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw asCatalogError(error, location);
  } finally {
    stream.destroy();
  }
}

function asCatalogError(error: unknown, location: string): SvcError {
  if (error instanceof SvcError) return error;
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return new SvcError('SVC_CATALOG', `${shownLocation(location)} cannot be read: ${messageOf(cause)}.`, {
    hint: 'Check the address or path, and that it can be reached from here.',
    cause: error,
  });
}
