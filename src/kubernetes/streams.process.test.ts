import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { beforeEach, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aStatus, ScriptedApiServer } from '../../test/support/scripted-api-server.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { PodProcess } from './kube-api.ts';

const pod = { namespace: 'default', name: 'web', container: 'main' };
const mebibyte = 1024 * 1024;
let server: ScriptedApiServer;

beforeEach(async () => {
  server = await ScriptedApiServer.start();
});

function send(socket: WebSocket, channel: number, bytes: Uint8Array | string): void {
  socket.send(Buffer.concat([Buffer.of(channel), Buffer.from(bytes)]));
}

const success = JSON.stringify({ metadata: {}, status: 'Success' });

function exitStatus(code: string): string {
  const details = { causes: [{ reason: 'ExitCode', message: code }] };
  return JSON.stringify({ metadata: {}, status: 'Failure', reason: 'NonZeroExitCode', message: `exit code ${code}`, details });
}

/** Received messages, each with its channel; boundaries are those of the sender. */
function received(socket: WebSocket): { readonly channel: number; readonly bytes: Buffer }[] {
  const messages: { channel: number; bytes: Buffer }[] = [];
  socket.on('message', (data: Buffer) => messages.push({ channel: data[0] ?? -1, bytes: data.subarray(1) }));
  return messages;
}

async function outputOf({ stdio, stderr, ended }: PodProcess): Promise<readonly unknown[]> {
  return await Promise.all([text(stdio), text(stderr), ended]);
}

test('a command receives its arguments and returns its outputs and exit code', async () => {
  server.onSocket = (socket) => {
    send(socket, 1, '');
    send(socket, 1, 'out');
    send(socket, 2, 'err');
    send(socket, 3, exitStatus('3'));
    socket.close();
  };
  const process = await server.open().exec(pod, ['sh', '-c', 'echo "$1" & x=1', 'ü']);
  expect(await outputOf(process)).toEqual(['out', 'err', { exitCode: 3, message: 'exit code 3' }]);
  const { url } = server.seen[0] ?? { url: new URL('https://none') };
  expect(url.pathname).toBe('/api/v1/namespaces/default/pods/web/exec');
  expect(url.searchParams.getAll('command')).toEqual(['sh', '-c', 'echo "$1" & x=1', 'ü']);
  expect(url.searchParams.get('container')).toBe('main');
  expect(url.searchParams.get('stdin')).toBe('false');
});

test('a command that cannot start has a message but no exit code', async () => {
  server.onSocket = (socket) => {
    send(socket, 3, JSON.stringify(aStatus(500, 'InternalError', 'no such file')));
    socket.close();
  };
  expect(await outputOf(await server.open().exec(pod, ['none']))).toEqual(['', '', { exitCode: undefined, message: 'no such file' }]);
});

test('an input is sent, and closed where the server supports that', async () => {
  const process = await new Promise<PodProcess>((resolve, reject) => {
    server.onSocket = (socket) => {
      const messages = received(socket);
      socket.on('message', () => {
        if (messages.at(-1)?.channel !== 255) return;
        send(socket, 1, Buffer.concat(messages.filter(({ channel }) => channel === 0).map(({ bytes }) => bytes)));
        send(socket, 3, success);
        socket.close();
      });
    };
    server.open().exec(pod, ['cat'], { stdin: true }).then(resolve, reject);
  });
  expect(process.canCloseInput).toBe(true);
  process.stdio.end('hello');
  expect(await outputOf(process)).toEqual(['hello', '', { exitCode: 0, message: undefined }]);
});

test('before Kubernetes 1.30 an input cannot be closed: its end is not sent', async () => {
  server.protocols = ['v4.channel.k8s.io'];
  let messages: ReturnType<typeof received> = [];
  let other: WebSocket | undefined;
  server.onSocket = (socket) => {
    other = socket;
    messages = received(socket);
  };
  const process = await server.open().exec(pod, ['cat'], { stdin: true });
  expect(process.canCloseInput).toBe(false);
  process.stdio.end('hello');
  await waitFor('the input', () => messages.length === 1);
  await waitFor('the end of the input', () => process.stdio.writableFinished);
  if (other !== undefined) send(other, 3, success);
  expect(await outputOf(process)).toEqual(['', '', { exitCode: 0, message: undefined }]);
  expect(messages.map(({ channel }) => channel)).toEqual([0]);
});

test('a lost connection gives no exit code and ends the output without error', async () => {
  server.onSocket = (socket) => {
    send(socket, 1, 'half');
    setImmediate(() => server.cut());
  };
  const [output, , ended] = await outputOf(await server.open().exec(pod, ['tar']));
  expect(output).toBe('half');
  expect(ended).toMatchObject({ exitCode: undefined, message: expect.stringContaining('cut') });
});

test('writing to a command that has ended is no error', async () => {
  server.onSocket = (socket) => {
    send(socket, 3, success);
    socket.close();
  };
  const process = await server.open().exec(pod, ['true'], { stdin: true });
  await process.ended;
  process.stdio.resume();
  expect(await new Promise((resolve) => process.stdio.write('too late', resolve))).toBeFalsy();
});

/** Counts the sockets that keep this process alive, the server's ends included. */
const connections = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;

test('a connection with holdProcess(false) does not keep this process alive', async () => {
  server.onSocket = () => undefined;
  const command = await server.open().exec(pod, ['cat'], { stdin: true });
  const held = connections();
  command.holdProcess(false);
  expect(connections()).toBe(held - 1);
  command.holdProcess(true);
  expect(connections()).toBe(held);
  command.close();
});

test('close cuts the connection', async () => {
  let isClosed = false;
  server.onSocket = (socket) => socket.on('close', () => (isClosed = true));
  const process = await server.open().exec(pod, ['sleep']);
  process.close();
  expect(await process.ended).toEqual({ exitCode: undefined, message: 'the connection was closed here' });
  await waitFor('the server to see it', () => isClosed);
});

test('an ended command leaves no timer, even when closed repeatedly', async () => {
  const clock = new FakeClock();
  server.onSocket = (socket) => send(socket, 3, success);
  const process = await server.open({ clock }).exec(pod, ['true']);
  expect(await outputOf(process)).toEqual(['', '', { exitCode: 0, message: undefined }]);
  await waitFor('the connection to be closed', () => server.connectionCount === 0 && clock.pendingTimers === 0);
  process.close();
  expect(clock.pendingTimers).toBe(0);
});

test('unread output stops the server instead of filling memory', async () => {
  const total = 64 * mebibyte;
  let other: WebSocket | undefined;
  server.onSocket = (socket) => {
    other = socket;
    for (let sent = 0; sent < total; sent += mebibyte) send(socket, 1, Buffer.alloc(mebibyte, sent / mebibyte));
    send(socket, 3, success);
    socket.close();
  };
  const process = await server.open().exec(pod, ['cat', 'big']);
  await once(process.stdio, 'readable');
  const held = await waitUntilStill(() => other?.bufferedAmount ?? 0);
  expect(held).toBeGreaterThan(total / 2);
  expect((await buffer(process.stdio)).length).toBe(total);
  expect((await process.ended).exitCode).toBe(0);
});

test('input that the server does not read stops the writer', async () => {
  let other: WebSocket | undefined;
  server.onSocket = (socket) => {
    other = socket;
    socket.pause();
  };
  const process = await server.open().exec(pod, ['sleep'], { stdin: true });
  let taken = 0;
  const chunk = randomBytes(mebibyte);
  const writeMore = (): void => {
    process.stdio.write(chunk, (error) => {
      if (error !== null && error !== undefined) return;
      taken += 1;
      if (taken < 64) writeMore();
    });
  };
  writeMore();
  const first = await waitUntilStill(() => taken);
  expect(first).toBeLessThan(48);
  other?.resume();
  await waitFor('the rest', () => taken === 64);
  process.close();
});

/** The value once it no longer changes. */
async function waitUntilStill(ask: () => number): Promise<number> {
  let before = -1;
  let calm = 0;
  return await waitFor('no more changes', () => {
    const now = ask();
    calm = now === before ? calm + 1 : 0;
    before = now;
    return calm > 10 && now;
  });
}

async function forwardTo(onSocket: (socket: WebSocket) => void): Promise<Duplex> {
  server.onSocket = (socket) => {
    // On both channels the first message is the port.
    send(socket, 0, Uint8Array.of(0x90, 0x1f));
    send(socket, 1, Uint8Array.of(0x90, 0x1f));
    onSocket(socket);
  };
  return await server.open().portForward(pod, 8080);
}

test('bytes pass to a port of a pod and back', async () => {
  const sent = randomBytes(3 * mebibyte);
  const stream = await forwardTo((socket) => {
    let count = 0;
    socket.on('message', (data: Buffer) => {
      socket.send(data);
      count += data.length - 1;
      if (count === sent.length) socket.close();
    });
  });
  expect(server.seen[0]?.url.href).toContain('/api/v1/namespaces/default/pods/web/portforward?ports=8080');
  expect(server.seen[0]?.headers['sec-websocket-protocol']).toBe('v4.channel.k8s.io');
  stream.write(sent);
  const got = await buffer(stream);
  expect(createHash('sha256').update(got).digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'));
});

test('the port number may arrive with the first bytes or split', async () => {
  server.onSocket = (socket) => {
    send(socket, 0, Uint8Array.of(0x90));
    send(socket, 0, Buffer.concat([Buffer.of(0x1f), Buffer.from('hello')]));
    socket.close();
  };
  expect(await text(await server.open().portForward(pod, 8080))).toBe('hello');
});

test("a port without a listener ends the connection with the server's message", async () => {
  const stream = await forwardTo((socket) => {
    send(socket, 1, 'error forwarding port 8080 to pod web: connection refused');
    socket.close();
  });
  const [error] = await once(stream, 'error');
  expect(error).toMatchObject({
    code: 'SVC_KUBERNETES',
    message: 'The connection to port 8080 of the pod default/web in test broke: error forwarding port 8080 to pod web: connection refused',
  });
});

test('a cut port-forward is an error, not an ordinary end', async () => {
  const stream = await forwardTo((socket) => {
    send(socket, 0, 'half');
    setImmediate(() => server.cut());
  });
  await expect(text(stream)).rejects.toThrow('broke');
});

test('destroying a port-forward closes it at the server', async () => {
  let isClosed = false;
  const stream = await forwardTo((socket) => socket.on('close', () => (isClosed = true)));
  stream.destroy();
  expect(await waitFor('the server to see it', () => isClosed)).toBe(true);
});

test('a half-closed port-forward still receives the reply and times out', async () => {
  const clock = new FakeClock();
  let other: WebSocket | undefined;
  server.onSocket = (socket) => {
    other = socket;
  };
  const stream = await server.open({ clock }).portForward(pod, 8080);
  stream.end('request');
  await waitFor('the end of the request', () => stream.writableFinished);
  if (other !== undefined) send(other, 0, Buffer.concat([Buffer.of(0x90, 0x1f), Buffer.from('reply')]));
  expect(String(await new Promise((resolve) => stream.once('data', resolve)))).toBe('reply');
  await clock.advance(59_000);
  expect(stream.destroyed).toBe(false);
  await clock.advance(2_000);
  expect(stream.destroyed).toBe(true);
});

test("a missing pod is reported with the server's message", async () => {
  server.refuseSocket = () => ({ code: 404, body: aStatus(404, 'NotFound', 'pods "web" not found') });
  const message = 'The cluster test did not get pods/exec web in namespace default: pods "web" not found';
  await expect(server.open().exec(pod, ['true'])).rejects.toMatchObject({ code: 'SVC_KUBERNETES', message });
  await waitFor('the connection to be closed', () => server.connectionCount === 0);
});

test('a forbidden stream is reported as SVC_DENIED', async () => {
  server.refuseSocket = () => ({ code: 403, body: aStatus(403, 'Forbidden', 'cannot get resource "pods/portforward"') });
  await expect(server.open().portForward(pod, 80)).rejects.toMatchObject({ code: 'SVC_DENIED' });
});

test('a connection without pongs is closed', async () => {
  const clock = new FakeClock();
  let other: WebSocket | undefined;
  server.onSocket = (socket) => {
    other = socket;
    socket.pause();
  };
  const process = await server.open({ clock }).exec(pod, ['sleep']);
  process.stdio.resume();
  await waitFor('the connection', () => other !== undefined);
  await clock.advance(45_000);
  expect(await process.ended).toEqual({ exitCode: undefined, message: 'nothing came for 40 s' });
});

test('a server that temporarily reads no input gets a longer timeout', async () => {
  const clock = new FakeClock();
  server.onSocket = (socket) => socket.pause();
  const process = await server.open({ clock }).exec(pod, ['sleep'], { stdin: true });
  process.stdio.resume();
  let isOver = false;
  void process.ended.then(() => (isOver = true));
  await new Promise<void>((resolve) => process.stdio.write('x', () => resolve()));
  await clock.advance(200_000);
  expect(isOver).toBe(false);
  await clock.advance(120_000);
  expect((await process.ended).message).toContain('nothing came');
});

test('an unanswered handshake times out, and can be cancelled', async () => {
  const clock = new FakeClock();
  let asked = 0;
  // The server neither accepts nor refuses.
  server.refuseSocket = () => {
    asked += 1;
    return undefined;
  };
  server.holdSockets = true;
  const result = server.open({ clock }).exec(pod, ['true']);
  result.catch(() => undefined);
  await waitFor('the handshake', () => asked === 1);
  await clock.advance(31_000);
  await expect(result).rejects.toThrow('no answer to the handshake within 30 s');
  const abort = new AbortController();
  const cancelled = server.open({ clock }).exec(pod, ['true'], { signal: abort.signal });
  cancelled.catch(() => undefined);
  await waitFor('the handshake', () => asked === 2);
  abort.abort(new Error('changed my mind'));
  await expect(cancelled).rejects.toThrow('changed my mind');
  await waitFor('the connections to be closed', () => server.connectionCount === 0);
});
