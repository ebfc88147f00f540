/**
 * How a request ended. `ok`: the replica's response was relayed to its end. `refused`: the balancer answered 4xx itself. `unavailable`: it answered
 * 5xx itself. `truncated`: the replica failed in the middle of its response. `client_gone`: the client left first.
 */
export type RequestOutcome = 'ok' | 'refused' | 'unavailable' | 'truncated' | 'client_gone';

/** What the access log says of one request; filled in as the request goes on. Times are ms; phases count from its arrival. */
export interface AccessRecord {
  /** Wall time of the arrival. */
  at: number;
  /** Monotonic, of the arrival; only a base for the phases. */
  startedAt: number;
  requestId: string;
  method: string;
  /** Without the query, which may hold secrets. */
  path: string;
  /** What the client was told; 0 when it left before. */
  status: number;
  outcome: RequestOutcome;
  /** Of an answer of the balancer itself. */
  code: string | undefined;
  replicaId: number | undefined;
  attempts: number;
  /** Why that replica was chosen. */
  reason: string | undefined;
  /** Requests that the replica had when it was chosen. */
  loadAtChoice: number;
  /** The last attempt had a connection. */
  sentMs: number | undefined;
  firstByteMs: number | undefined;
  totalMs: number;
  /** Of the bodies, without framing. */
  bytesIn: number;
  bytesOut: number;
}

/** A request that has just arrived. */
export function openRecord(at: number, startedAt: number): AccessRecord {
  return {
    at,
    startedAt,
    requestId: '',
    method: '',
    path: '',
    status: 0,
    outcome: 'client_gone',
    code: undefined,
    replicaId: undefined,
    attempts: 0,
    reason: undefined,
    loadAtChoice: 0,
    sentMs: undefined,
    firstByteMs: undefined,
    totalMs: 0,
    bytesIn: 0,
    bytesOut: 0,
  };
}

/** One JSON object with its line end. Put together by hand, as there is one for each request. */
export function accessLine(record: AccessRecord): string {
  const { code, replicaId, reason, sentMs, firstByteMs } = record;
  // A method is a token, so it has nothing that would have to be escaped.
  let line = `{"at":${record.at},"id":${quoted(record.requestId)},"method":"${record.method}"`;
  line += `,"path":${quoted(record.path)},"status":${record.status},"outcome":"${record.outcome}"`;
  if (code !== undefined) line += `,"code":"${code}"`;
  if (replicaId !== undefined) line += `,"replica":${replicaId},"reason":"${reason ?? ''}","load":${record.loadAtChoice}`;
  line += `,"attempts":${record.attempts}`;
  if (sentMs !== undefined) line += `,"sent_ms":${milliseconds(sentMs)}`;
  if (firstByteMs !== undefined) line += `,"first_byte_ms":${milliseconds(firstByteMs)}`;
  return `${line},"total_ms":${milliseconds(record.totalMs)},"bytes_in":${record.bytesIn},"bytes_out":${record.bytesOut}}\n`;
}

/** Paths and ids are visible ASCII; of that, only two characters mean something inside quotes. */
function quoted(text: string): string {
  return text.includes('"') || text.includes('\\') ? JSON.stringify(text) : `"${text}"`;
}

/** Two decimals, which is as much as a clock that is read between events is worth; by whole numbers, as printing a fraction is slow. */
function milliseconds(ms: number): string {
  const hundredths = Math.round(ms * 100);
  const rest = hundredths % 100;
  return `${Math.trunc(hundredths / 100)}.${rest < 10 ? '0' : ''}${rest}`;
}

/** A path without its query. */
export function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query < 0 ? path : path.slice(0, query);
}
