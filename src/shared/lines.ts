import { StringDecoder } from 'node:string_decoder';

/** Default limit of a line. A peer that sends more without a line end loses that line and does not exhaust memory. */
const longestLine = 4_194_304;

/** A handler of data events: calls `onLine` for each complete line without its end. Empty lines are skipped. */
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
