/** Of one block; no read is larger. */
const blockBytes = 65_536;
/** What is smaller gets memory of its own: a whole block for it would be a waste where a slow peer makes it wait. */
const leastBytes = 32_768;
/** 2 MiB for each thread: as many as are in use at one moment on a busy endpoint, since nearly all come back before the next read. */
const maxIdleBlocks = 32;

const idle: ArrayBuffer[] = [];
const ours = new WeakSet<ArrayBufferLike>();

/**
 * A copy of `bytes[from, to)` in memory that is used again after `giveBack`. A new buffer for each large read would cost more than the copying: fresh
 * pages from the system, and a collector that must give them back.
 */
export function copyToSend(bytes: Buffer, from: number, to: number): Buffer {
  const length = to - from;
  if (length < leastBytes || length > blockBytes) return Buffer.from(bytes.subarray(from, to));
  const memory = idle.pop() ?? newMemory();
  const copy = Buffer.from(memory, 0, length);
  bytes.copy(copy, 0, from, to);
  return copy;
}

/** The bytes have left: their memory may be used again. Does nothing for other buffers. */
export function giveBack({ buffer }: Uint8Array): void {
  if (idle.length < maxIdleBlocks && buffer instanceof ArrayBuffer && ours.has(buffer)) idle.push(buffer);
}

function newMemory(): ArrayBuffer {
  const memory = new ArrayBuffer(blockBytes);
  ours.add(memory);
  return memory;
}
