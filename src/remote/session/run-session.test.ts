import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { runSession, type SessionCarrier } from './run-session.ts';
import type { SessionRequest } from './session-machine.ts';

/** A machine that reports the start of the command and then waits. */
function fakeCarrier(): SessionCarrier & {
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
  readonly sent: () => string;
  readonly token: () => string;
} {
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  const stdin = new PassThrough();
  let sent = '';
  stdin.on('data', (chunk: Buffer) => (sent += chunk.toString()));
  const carrier = { stdin, stdout: new PassThrough(), stderr: new PassThrough(), closed, kill: () => resolve('cut') };
  return { ...carrier, sent: () => sent, token: () => /svc-[0-9a-f]{24}/.exec(sent)?.[0] ?? '' };
}

const request: SessionRequest = { argv: ['cat'], env: {}, input: 'detached', onStdout: () => undefined, onStderr: () => undefined };
const clock = new FakeClock();

test('an input shorter than announced ends the session', async () => {
  const end = await runSession(
    () => fakeCarrier(),
    { ...request, input: { stream: Readable.from([Buffer.from('abc')]), bytes: 4 } },
    clock,
  );
  expect(end).toMatchObject({ how: 'lost', exitCode: undefined, said: 'cut' });
});

test('an input of the announced length is sent whole, and the session completes', async () => {
  const carrier = fakeCarrier();
  const running = runSession(() => carrier, { ...request, input: { stream: Readable.from([Buffer.from('abcd')]), bytes: 4 } }, clock);
  await expect.poll(() => carrier.sent().endsWith('abcd')).toBe(true);
  for (const output of [carrier.stdout, carrier.stderr]) output.write(`${carrier.token()}+\n${carrier.token()}=7;\n`);
  await expect(running).resolves.toMatchObject({ how: 'ended', exitCode: 7 });
});

test('an unreadable input fails the call with its error', async () => {
  const stream = new Readable({ read: () => undefined });
  const running = runSession(() => fakeCarrier(), { ...request, input: { stream, bytes: 4 } }, clock);
  queueMicrotask(() => stream.destroy(new Error('EIO: the disk is broken')));
  await expect(running).rejects.toThrow('the disk is broken');
});

test('a cancelled or invalid request opens no session', async () => {
  let opened = 0;
  const open = (): SessionCarrier => {
    opened += 1;
    return fakeCarrier();
  };
  await expect(runSession(open, { ...request, signal: AbortSignal.abort(new Error('enough')) }, clock)).rejects.toThrow('enough');
  await expect(runSession(open, { ...request, env: { 'a-b': '' } }, clock)).rejects.toThrow("cannot be called 'a-b'");
  expect(opened).toBe(0);
});
