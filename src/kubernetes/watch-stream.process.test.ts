import type { ServerResponse } from 'node:http';
import { beforeEach, expect, test, vi } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { anObject, aStatus, ScriptedApiServer, sendStatus } from '../../test/support/scripted-api-server.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { KubeWatchEnd } from './kube-api.ts';

let server: ScriptedApiServer;

beforeEach(async () => {
  server = await ScriptedApiServer.start();
});

interface Watch {
  readonly events: string[];
  readonly end: Promise<KubeWatchEnd>;
  readonly abort: AbortController;
}

function watch(options: { readonly clock?: Clock } = {}): Watch {
  const events: string[] = [];
  const abort = new AbortController();
  const end = server.open(options).watch('/api/v1/configmaps', {
    resourceVersion: '5',
    selection: { labels: { a: 'b' } },
    signal: abort.signal,
    onEvent: ({ type, object }) => events.push(`${type} ${object.metadata.name} ${object.metadata.resourceVersion}`),
  });
  return { events, end, abort };
}

const event = (type: string, name: string, version: string): string => `${JSON.stringify({ type, object: anObject(name, version) })}\n`;

function answerWith(write: (response: ServerResponse) => void): void {
  server.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    write(response);
  });
}

test('changes after the version are reported until the server ends the watch', async () => {
  answerWith((response) =>
    response.end(event('ADDED', 'a', '6') + event('MODIFIED', 'a', '7') + event('BOOKMARK', '', '9') + event('DELETED', 'a', '11')),
  );
  const { events, end } = watch();
  expect(await end).toEqual({ how: 'ended' });
  expect(events).toEqual(['ADDED a 6', 'MODIFIED a 7', 'BOOKMARK  9', 'DELETED a 11']);
  expect(Object.fromEntries(server.seen[0]?.url.searchParams ?? [])).toEqual({
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: '5',
    labelSelector: 'a=b',
    timeoutSeconds: '25',
  });
});

test('events may arrive split, even within a character', async () => {
  const bytes = Buffer.from(event('ADDED', 'größe', '6') + event('ADDED', 'b', '7'));
  answerWith((response) => {
    const send = (index: number): void => {
      if (index === bytes.length) response.end();
      else response.write(bytes.subarray(index, index + 1), () => send(index + 1));
    };
    send(0);
  });
  const { events, end } = watch();
  expect(await end).toEqual({ how: 'ended' });
  expect(events).toEqual(['ADDED größe 6', 'ADDED b 7']);
});

test('an expired version is reported as expired, by status or by event', async () => {
  server.answer((_request, response) => sendStatus(response, 410, 'Expired', 'too old resource version: 5 (9)'));
  const first = await watch().end;
  expect(first.how).toBe('expired');
  expect(first.reason).toContain('too old resource version: 5 (9)');
  answerWith((response) => response.write(`${JSON.stringify({ type: 'ERROR', object: aStatus(410, 'Expired', 'too old') })}\n`));
  expect(await watch().end).toEqual({ how: 'expired', reason: 'too old' });
});

test.each([
  ['garbage', 'what is this\n', 'what came is not an event'],
  ['an event without an object', '{"type":"ADDED"}\n', 'what came is not an event'],
  ['an event of an unknown type', event('CHANGED', 'a', '6'), 'what came is not an event'],
  [
    'an error of the server',
    `${JSON.stringify({ type: 'ERROR', object: aStatus(500, 'InternalError', 'etcd is away') })}\n`,
    'etcd is away',
  ],
])('%s breaks the watch, and earlier events count', async (_what, text, reason) => {
  answerWith((response) => response.write(event('ADDED', 'a', '6') + text));
  const { events, end } = watch();
  expect(await end).toEqual({ how: 'failed', reason });
  expect(events).toEqual(['ADDED a 6']);
  await waitFor('the connection to be closed', () => server.connectionCount === 0);
});

test('a connection cut within an event is reported as broken', async () => {
  answerWith((response) => response.write(event('ADDED', 'a', '6') + '{"type":"ADD', () => server.cut()));
  const { events, end } = watch();
  expect((await end).how).toBe('failed');
  expect(events).toEqual(['ADDED a 6']);
});

test('a silent connection ends the watch', async () => {
  const clock = new FakeClock();
  answerWith((response) => response.write(event('ADDED', 'a', '6')));
  const { events, end } = watch({ clock });
  await waitFor('the event', () => events.length === 1);
  await clock.advance(34_000);
  expect(events).toEqual(['ADDED a 6']);
  await clock.advance(2_000);
  expect(await end).toEqual({ how: 'failed', reason: 'nothing came for 35 s' });
});

test("a rejected watch is reported with the server's message", async () => {
  server.answer((_request, response) => sendStatus(response, 403, 'Forbidden', 'you may not watch'));
  const end = await watch().end;
  expect(end.how).toBe('failed');
  expect(end.reason).toContain('refuses to watch configmaps: you may not watch');
});

test('an unreachable server is reported as a failed watch', async () => {
  await server.stop();
  const end = await watch().end;
  expect(end.how).toBe('failed');
  expect(end.reason).toContain('ECONNREFUSED');
});

test('the signal ends the watch and its connection', async () => {
  answerWith((response) => response.write(event('ADDED', 'a', '6')));
  const { events, end, abort } = watch();
  await waitFor('the event', () => events.length === 1);
  abort.abort();
  expect(await end).toEqual({ how: 'aborted' });
  await waitFor('the connection to be closed', () => server.connectionCount === 0);
});

test('an ended watch leaves its connection to the next one', async () => {
  answerWith((response) => response.end(event('ADDED', 'a', '6')));
  const api = server.open();
  const options = { resourceVersion: '5', signal: new AbortController().signal, onEvent: () => undefined };
  await api.watch('/api/v1/configmaps', options);
  await api.watch('/api/v1/configmaps', options);
  expect(server.connectionCount).toBe(1);
});

test('a closed fence prevents the watch', async () => {
  const fence = {
    check: () => {
      throw new SvcError('SVC_NOT_LEADER', 'the lease has run out');
    },
  };
  const options = { resourceVersion: '5', signal: new AbortController().signal, onEvent: () => undefined };
  await expect(server.open({ fence }).watch('/api/v1/configmaps', options)).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
});

test.each([429, 503])('a server too busy for a watch (%i) is retried after Retry-After', async (code) => {
  let count = 0;
  server.answer((_request, response) => {
    count += 1;
    if (count === 1) return sendStatus(response, code, 'Busy', 'busy', { 'retry-after': '2' });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(event('ADDED', 'a', '6'));
  });
  const clock = new FakeClock();
  const pauses = vi.spyOn(clock, 'sleep');
  const { events, end } = watch({ clock });
  await waitFor('the pause', () => pauses.mock.calls.length === 1);
  await clock.advance(1_900);
  expect(server.seen).toHaveLength(1);
  await clock.advance(200);
  expect(await end).toEqual({ how: 'ended' });
  expect(events).toEqual(['ADDED a 6']);
});
