import { DatabaseError } from 'pg';
import { messageOf, SvcError } from '../../shared/errors.ts';

/** `away`: no connection, so a retry on a new one may succeed. The others are responses of the server. */
type PostgresFailure = 'away' | 'refused' | 'busy' | 'full' | 'corrupt' | 'bug';

/** By SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html, or its class (two characters). */
const byCode: Readonly<Record<string, PostgresFailure>> = {
  // Shutting down, crashed, starting, ended because its transaction was idle, ended because it was idle.
  '57P01': 'away',
  '57P02': 'away',
  '57P03': 'away',
  '57P05': 'away',
  '25P03': 'away',
  // Too many connections: others will close theirs.
  '53300': 'away',
  // A standby, or a primary that has become one: a new connection may reach the primary.
  '25006': 'away',
  '55P03': 'busy',
  '57014': 'busy',
  '40001': 'busy',
  '40P01': 'busy',
  '53100': 'full',
  '42501': 'refused',
  '3D000': 'refused',
  '3F000': 'refused',
  '0A000': 'bug',
};

const byClass: Readonly<Record<string, PostgresFailure>> = { '08': 'away', '28': 'refused', '53': 'busy', '58': 'corrupt', XX: 'corrupt' };

/** Node's errors about the route to the server. */
const systemCodes =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|ENOTFOUND|EAI_AGAIN|ENOENT|EADDRNOTAVAIL|EMFILE)$/;

/** Messages of pg when a connection ended or timed out; it has no codes for these. */
const lostMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Client was closed)/;

/** Kind of failure; undefined when the error is not about the database. */
export function postgresFailure(error: unknown): PostgresFailure | undefined {
  if (error instanceof DatabaseError) {
    const code = error.code ?? '';
    return byCode[code] ?? byClass[code.slice(0, 2)] ?? 'bug';
  }
  if (!(error instanceof Error) || error instanceof SvcError) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (systemCodes.test(code) || lostMessages.test(error.message)) return 'away';
  if (
    /^(The server does not support SSL|There was an error establishing an SSL|SASL|Unknown authenticationOk|Server requires)/.test(
      error.message,
    )
  )
    return 'refused';
  return /CERT|^ERR_(TLS|SSL|OSSL)|SELF_SIGNED|UNABLE_TO/.test(code) ? 'refused' : undefined;
}

/** Whether the server reported that it does not support TLS. */
export function isWithoutTls(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('The server does not support SSL');
}

/**
 * The error to show for a failure of PostgreSQL at `shown`; other errors stay unchanged. Details beside the server's
 * message may quote columns, so they are omitted. For a bug in svc, so is the message.
 */
export function explainPostgresError(error: unknown, shown: string): unknown {
  const failure = postgresFailure(error);
  const said = messageOf(error).replace(/\.$/, '');
  switch (failure) {
    case undefined:
      return error;
    case 'away':
      return new SvcError('SVC_DATABASE', `The state database at ${shown} does not answer: ${said}.`);
    case 'refused':
      return new SvcError('SVC_DATABASE_REFUSED', `The state database at ${shown} refuses: ${said}.`);
    case 'busy':
      return new SvcError('SVC_STATE_BUSY', `The state database at ${shown} is kept busy by another process: ${said}.`);
    case 'full':
      return new SvcError('SVC_NO_SPACE', `The state database at ${shown} has no space left.`, {
        hint: 'Free space on the machine of the PostgreSQL server.',
      });
    case 'corrupt':
      return new SvcError('SVC_STATE_CORRUPT', `The state database at ${shown} cannot be read: ${said}.`);
    case 'bug': {
      const { code, table, constraint } = error instanceof DatabaseError ? error : {};
      const where = [table, constraint].filter((part) => part !== undefined).join(', ');
      return new Error(`PostgreSQL does not accept a statement: ${code ?? 'no code'}${where === '' ? '' : ` (${where})`}`);
    }
  }
}
