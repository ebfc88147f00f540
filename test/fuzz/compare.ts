import { isDeepStrictEqual } from 'node:util';
import type { ReadMessage, Reading } from './reading.ts';

/**
 * Returns the difference between svc's and `node:http`'s reading; undefined when there is none. Everything after a
 * refusal by svc is ignored.
 */
export function compareReadings(own: Reading, node: Reading): string | undefined {
  for (const [index, message] of own.messages.entries()) {
    const difference = differenceOf(message, node.messages[index]);
    if (difference !== undefined) return `message ${index + 1}: ${difference} (node:http refuses: ${node.refusal ?? 'nothing'})`;
  }
  if (own.refusal !== undefined) return undefined;
  if (node.messages.length > own.messages.length) return `node:http reads ${node.messages.length} messages, ours ${own.messages.length}`;
  return node.refusal === undefined ? undefined : `node:http refuses it (${node.refusal}), ours does not`;
}

/** Returns the part in which two readings of a message differ; undefined when in none. */
export function differenceOf(own: ReadMessage, node: ReadMessage | undefined): string | undefined {
  if (node === undefined) return 'node:http does not see it';
  for (const part of ['first', 'fields', 'body', 'trailers', 'isComplete'] as const) {
    if (!isDeepStrictEqual(own[part], node[part])) {
      return `${part}: ours ${JSON.stringify(own[part])}, node:http ${JSON.stringify(node[part])}`;
    }
  }
  return undefined;
}

/** Whether `node:http` read a prefix of svc's reading, and then stopped. */
export function isBeginning(node: Reading, own: Reading): boolean {
  return node.messages.every((message, index) => {
    const other = own.messages[index];
    if (other === undefined) return false;
    if (message.isComplete) return differenceOf(other, message) === undefined;
    const isSameHead = differenceOf({ ...other, body: '', trailers: [], isComplete: false }, { ...message, body: '', trailers: [] });
    return isSameHead === undefined && other.body.startsWith(message.body);
  });
}

/** A piece of a body as one chunk; empty for an empty piece, because a chunk of length 0 would end the body. */
export function chunkOf(body: string): string {
  return body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`;
}

/** The lines of a message, whose order may change at a second forwarding. */
export function sortedLines(text: string): readonly string[] {
  return text.split('\r\n').toSorted();
}
