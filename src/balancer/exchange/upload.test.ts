import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Deadlines } from '../transport/deadlines.ts';
import { noTrailers } from '../http1/chunked-decoder.ts';
import { Upload } from './upload.ts';

/** An upload, with what its client was told and what a stream got. */
function aScene() {
  const clock = new FakeClock();
  const told: string[] = [];
  const upload = new Upload(
    { pauseReading: () => void told.push('pause'), resumeReading: () => void told.push('resume') },
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
  return { clock, upload, told, sent, stream, close };
}

const receive = (upload: Upload, text: string, isHeld = true): void => {
  const read = Buffer.from(text);
  upload.received(read, 0, read.length, undefined, isHeld);
  upload.settle(false);
  // The next read goes to the same buffer.
  read.fill('x');
};

test('what came before there was a stream is sent over it, to the end', () => {
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

test('a body that may not be sent twice is let go once it was sent', () => {
  const { upload, stream } = aScene();
  receive(upload, 'once');
  upload.sendTo(stream, false);
  expect({ held: upload.held, isReplayable: upload.isReplayable }).toEqual({ held: 0, isReplayable: false });
});

test('the client waits while the replica takes no more, and while much is held without one', () => {
  const { upload, stream, told, close } = aScene();
  close();
  upload.sendTo(stream, true);
  expect({ told, isBlocked: upload.isBlocked }).toEqual({ told: ['resume', 'pause'], isBlocked: true });
  upload.goOn();
  expect({ told, isBlocked: upload.isBlocked }).toEqual({ told: ['resume', 'pause', 'resume'], isBlocked: false });
  const other = aScene();
  receive(other.upload, 'y'.repeat(300_000));
  expect(other.told).toEqual(['pause']);
});

test('a body that trickles is too slow in the end; one that has come, or is not waited for, never is', async () => {
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
