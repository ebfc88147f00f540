import { StringDecoder } from 'node:string_decoder';

/** Longest line that is kept unless another one is wanted; a peer that sends more without an end loses that line, not our memory. */
const longestLine = 4_194_304;

/** A handler of data events that calls `onLine` for each complete line, without its end. Empty lines are skipped. */
export function splitLines(onLine: (line: string) => void, maxLength = longestLine): (chunk: Buffer) => void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return (chunk) => {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxLength) rest = '';
    for (const line of lines) if (line !== '') onLine(line);
  };
}
