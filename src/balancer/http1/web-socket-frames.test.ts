import fc from 'fast-check';
import { expect, test } from 'vitest';
import { goingAwayFrame, WebSocketFrames } from './web-socket-frames.ts';

/** One unmasked frame, or a masked one, with that much payload. */
function frame(length: number, isMasked: boolean): Buffer {
  const mask = isMasked ? 0x80 : 0;
  let head = Buffer.from([0x82, mask | length]);
  if (length > 65_535) {
    head = Buffer.alloc(10, 0x82);
    head[1] = mask | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  } else if (length > 125) {
    head = Buffer.alloc(4, 0x82);
    head[1] = mask | 126;
    head.writeUInt16BE(length, 2);
  }
  return Buffer.concat([head, Buffer.alloc(isMasked ? 4 : 0, 0x7f), Buffer.alloc(length, 0xff)]);
}

const lengths = fc.oneof(fc.nat(130), fc.constantFrom(125, 126, 127, 65_535, 65_536, 70_000));

test('for any reads, isBetweenFrames is true exactly at the end of a frame', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(lengths, fc.boolean()), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 5_000 }),
      (all, size) => {
        const frames = all.map(([length, isMasked]) => frame(length, isMasked));
        const bytes = Buffer.concat(frames);
        const ends = new Set(frames.map((_, index) => frames.slice(0, index + 1).reduce((sum, one) => sum + one.length, 0)));
        const watch = new WebSocketFrames();
        for (let at = 0; at < bytes.length; at += size) {
          const to = Math.min(bytes.length, at + size);
          watch.track(bytes, at, to);
          if (watch.isBetweenFrames !== ends.has(to)) return false;
        }
        return watch.isBetweenFrames;
      },
    ),
  );
});

test('goingAwayFrame is one whole close frame with status 1001', () => {
  const bytes = Buffer.from(goingAwayFrame, 'latin1');
  const watch = new WebSocketFrames();
  watch.track(bytes, 0, bytes.length);
  expect({ opcode: (bytes[0] ?? 0) & 0x0f, status: bytes.readUInt16BE(2), isWhole: watch.isBetweenFrames }).toEqual({
    opcode: 8,
    status: 1_001,
    isWhole: true,
  });
});
