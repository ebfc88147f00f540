import { isoTime } from '../../shared/clock.ts';
import type { AccessRecord, FailedTry } from './access-record.ts';

/** A client may send 8 KiB of path; the beginning identifies the request. */
const maxPathLength = 1_024;
const maxMethodLength = 32;

/**
 * One JSON object with its line end, assembled by hand because each request writes one.
 *
 * It leaves out headers and the query, which hold secrets. It has the client's address, which is personal data, only if
 * the service asks for it. The replica gets the address in `X-Forwarded-For`; the request id links the two.
 */
export function accessLine(record: AccessRecord): string {
  const { client, code, fault, replica, traceId, sentMs, firstByteMs } = record;
  // A method is a token, so it needs no escaping.
  let line = `{"at":"${timeText(record.at)}","id":${quoted(record.requestId)},"method":"${cut(record.method, maxMethodLength)}"`;
  line += `,"path":${quoted(cut(record.path, maxPathLength))},"protocol":"${record.protocol}"`;
  if (record.isTls) line += ',"tls":true';
  if (client !== undefined) line += `,"client":${quoted(client)}`;
  line += `,"status":${record.status},"outcome":"${record.outcome}"`;
  if (code !== undefined) line += `,"code":"${code}"`;
  if (fault !== undefined) line += `,"fault":"${fault}"`;
  if (replica !== undefined) {
    line += `,"replica":${replica.id},"place":${quoted(replica.location)},"reason":"${record.reason ?? ''}","load":${record.loadAtChoice}`;
  }
  line += `,"attempts":${record.attempts}`;
  if (record.failed.length > 0) line += `,"failed":[${record.failed.map(failedText).join(',')}]`;
  if (traceId !== undefined) line += `,"trace":"${traceId}"`;
  if (record.queuedMs > 0) line += `,"queued_ms":${milliseconds(record.queuedMs)}`;
  if (sentMs !== undefined) line += `,"sent_ms":${milliseconds(sentMs)}`;
  if (firstByteMs !== undefined) line += `,"first_byte_ms":${milliseconds(firstByteMs)}`;
  return `${line},"total_ms":${milliseconds(record.totalMs)},"bytes_in":${record.bytesIn},"bytes_out":${record.bytesOut}}\n`;
}

const failedText = ({ replicaId, why }: FailedTry): string => `{"replica":${replicaId},"why":"${why}"}`;

const cut = (text: string, length: number): string => (text.length > length ? text.slice(0, length) : text);

const letterQuote = 0x22;
const letterBackslash = 0x5c;

/** Nearly all paths are visible ASCII with nothing to escape. Checking each character is faster than escaping. */
function quoted(text: string): string {
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charCodeAt(at);
    if (letter < 0x20 || letter > 0x7e || letter === letterQuote || letter === letterBackslash) return JSON.stringify(text);
  }
  return `"${text}"`;
}

const twoDigits = Array.from({ length: 100 }, (_, count) => String(count).padStart(2, '0'));
const threeDigits = Array.from({ length: 1_000 }, (_, count) => String(count).padStart(3, '0'));

/** Two decimals: the clock is read between events, so more carry no information. Printing a fraction would be slow. */
function milliseconds(ms: number): string {
  const hundredths = Math.round(ms * 100);
  const whole = Math.trunc(hundredths / 100);
  return `${whole}.${twoDigits[hundredths - whole * 100] ?? '00'}`;
}

let lastSecond = Number.NaN;
let lastSecondText = '';

/** ISO 8601, from wall time in whole ms. Most of it equals that of the previous line, and printing a date is slow. */
function timeText(at: number): string {
  const second = Math.floor(at / 1_000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastSecondText = isoTime(second * 1_000).slice(0, -'000Z'.length);
  }
  return `${lastSecondText}${threeDigits[at - second * 1_000] ?? '000'}Z`;
}
