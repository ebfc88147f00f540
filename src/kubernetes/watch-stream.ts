import type { IncomingMessage } from 'node:http';
import { StringDecoder } from 'node:string_decoder';
import type { CancelTimer, Clock } from '../shared/clock.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { isObject, parseJson } from '../shared/json.ts';
import type { KubeDeps } from './http-exchange.ts';
import { isKubeObject, type KubeEvent, type KubeObject, type KubeWatch, type KubeWatchEnd } from './kube-api.ts';
import { kubeStatusOf, statusOfObject } from './kube-errors.ts';
import { selectionQuery } from './paths.ts';

/**
 * Requested length of a watch, s. Short, because only its end reveals a dead connection: bookmarks come once a minute
 * at best, and never without changes. A new watch is cheap and continues where the last one ended.
 */
const watchSeconds = 25;
/** With more silence beyond the expected end, the server or the connection is gone. */
const graceSeconds = 10;
const silenceSeconds = watchSeconds + graceSeconds;
const silence: KubeWatchEnd = { how: 'failed', reason: `nothing came for ${silenceSeconds} s` };
/** Far longer than any object (etcd accepts 1.5 MiB). */
const longestLine = 16 * 1024 * 1024;

/** Implements `KubeApi.watch`; `open` sends the request. Throws only SVC_NOT_LEADER; other failures end the watch. */
export async function watchOnce<T extends KubeObject>(
  open: (query: Readonly<Record<string, string>>) => Promise<IncomingMessage>,
  { clock, login }: Pick<KubeDeps, 'clock' | 'login'>,
  { resourceVersion, selection = {}, onEvent, onOpen, signal }: KubeWatch<T>,
): Promise<KubeWatchEnd> {
  const query = {
    ...selectionQuery(selection),
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion,
    timeoutSeconds: String(watchSeconds),
  };
  try {
    const response = await open(query);
    onOpen?.();
    const end = await readEvents(response, clock, onEvent, signal);
    if (end === silence) login.forgetConnections();
    return end;
  } catch (error) {
    if (signal.aborted) return { how: 'aborted' };
    if (kubeStatusOf(error)?.code === 410) return { how: 'expired', reason: messageOf(error) };
    // Only a leader may act on events.
    if (isNotLeader(error)) throw error;
    return { how: 'failed', reason: messageOf(error) };
  }
}

/** Whether the fence stopped the request: a retry fails too. */
export function isNotLeader(error: unknown): boolean {
  return error instanceof SvcError && error.code === 'SVC_NOT_LEADER';
}

function readEvents<T extends KubeObject>(
  response: IncomingMessage,
  clock: Clock,
  onEvent: (event: KubeEvent<T>) => void,
  signal: AbortSignal,
): Promise<KubeWatchEnd> {
  const { promise, resolve } = Promise.withResolvers<KubeWatchEnd>();
  const decoder = new StringDecoder('utf8');
  let pending = '';
  let cancelTimer: CancelTimer | undefined;
  const end = (how: KubeWatchEnd): void => {
    resolve(how);
    cancelTimer?.();
    response.removeListener('data', onData);
    signal.removeEventListener('abort', onAbort);
    // A response that was read to its end leaves its connection to the next request.
    if (!response.complete) response.destroy();
  };
  const onAbort = (): void => end({ how: 'aborted' });
  const restartSilenceTimer = (): void => {
    cancelTimer?.();
    cancelTimer = clock.after(silenceSeconds * 1000, () => end(silence));
  };
  const onData = (chunk: Buffer): void => {
    restartSilenceTimer();
    pending += decoder.write(chunk);
    if (!pending.includes('\n')) {
      if (pending.length > longestLine) end({ how: 'failed', reason: 'an event was longer than any object can be' });
      return;
    }
    const lines = pending.split('\n');
    pending = lines.pop() ?? '';
    for (const line of lines) {
      const stop = line.trim() === '' ? undefined : readEvent(line, onEvent);
      if (stop !== undefined) {
        end(stop);
        return;
      }
    }
  };
  signal.addEventListener('abort', onAbort, { once: true });
  restartSilenceTimer();
  response.on('data', onData);
  response.on('end', () => end({ how: 'ended' }));
  response.on('error', (error) => end({ how: 'failed', reason: messageOf(error) }));
  response.on('close', () => end({ how: 'failed', reason: 'the connection was cut' }));
  if (signal.aborted) onAbort();
  return promise;
}

function readEvent<T extends KubeObject>(line: string, onEvent: (event: KubeEvent<T>) => void): KubeWatchEnd | undefined {
  const said = parseJson(line);
  if (!isObject(said) || !isObject(said['object'])) return { how: 'failed', reason: 'what came is not an event' };
  const { type, object } = said;
  if (type === 'ERROR') {
    const status = statusOfObject(object, 500);
    return { how: status.code === 410 ? 'expired' : 'failed', reason: status.message };
  }
  if (!isEventType(type) || !isKubeObject<T>(object)) return { how: 'failed', reason: 'what came is not an event' };
  onEvent({ type, object });
  return undefined;
}

function isEventType(type: unknown): type is KubeEvent<KubeObject>['type'] {
  return type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK';
}
