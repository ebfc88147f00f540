import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Deadlines } from '../transport/deadlines.ts';
import { noTrailers } from '../http1/chunked-decoder.ts';
import { Upload } from './upload.ts';

/** An upload, with the calls made to its client and the bytes sent to a stream. */
function aScene() {
  const clock = new FakeClock();
  const calls: string[] = [];
  const upload = new Upload(
    { pauseReading: () => void calls.push('pause'), resumeReading: () => void calls.push('resume') },
    new Deadlines(clock),
  );
  const sent: string[] = [];
  let isOpen = true;
  const stream = {
    body: (bytes: Buffer, from: number, to: number) => void sent.push(bytes.toString('latin1', from, to)),
    end: () => void sent.push('end'),
    flush: () => isOpen,
  };
  const close = (): void => {
    isOpen = false;
  };
  return { clock, upload, calls, sent, stream, close };
}

const receive = (upload: Upload, text: string, isHeld = true): void => {
  const read = Buffer.from(text);
  upload.received(read, 0, read.length, undefined, isHeld);
  upload.settle(false);
  // The next read uses the same buffer.
  read.fill('x');
};

test('bytes read before a stream exists are sent over it, to the end', () => {
  const { upload, stream, sent } = aScene();
  receive(upload, 'hel');
  receive(upload, 'lo');
  upload.ended(noTrailers, undefined);
  upload.sendTo(stream, true);
  expect({ sent, isRead: upload.isRead, bytes: upload.bytes, isReplayable: upload.isReplayable }).toEqual({
    sent: ['hel', 'lo', 'end'],
    isRead: true,
    bytes: 5,
    isReplayable: true,
  });
});

test('a body that must not be sent twice is dropped after sending', () => {
  const { upload, stream } = aScene();
  receive(upload, 'once');
  upload.sendTo(stream, false);
  expect({ held: upload.held, isReplayable: upload.isReplayable }).toEqual({ held: 0, isReplayable: false });
});

test('reading pauses while the replica is slow, and while too much is held', () => {
  const { upload, stream, calls, close } = aScene();
  close();
  upload.sendTo(stream, true);
  expect({ calls, isBlocked: upload.isBlocked }).toEqual({ calls: ['resume', 'pause'], isBlocked: true });
  upload.goOn();
  expect({ calls, isBlocked: upload.isBlocked }).toEqual({ calls: ['resume', 'pause', 'resume'], isBlocked: false });
  const other = aScene();
  receive(other.upload, 'y'.repeat(300_000));
  expect(other.calls).toEqual(['pause']);
});

test('a trickling body becomes too slow; a complete or unawaited one never does', async () => {
  const { upload, clock, stream } = aScene();
  expect(upload.tooSlowAt).toBe(Number.POSITIVE_INFINITY);
  upload.watchPace();
  const first = upload.tooSlowAt;
  await clock.advance(5_000);
  receive(upload, 'a byte or two');
  expect(upload.tooSlowAt - first).toBeLessThan(100);
  upload.rest();
  expect(upload.tooSlowAt).toBe(Number.POSITIVE_INFINITY);
  upload.sendTo(stream, true);
  expect(upload.tooSlowAt).toBeLessThan(Number.POSITIVE_INFINITY);
  upload.ended(noTrailers, undefined);
  expect(upload.tooSlowAt).toBe(Number.POSITIVE_INFINITY);
});
