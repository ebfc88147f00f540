import type { AccessRecord } from '../access-log/access-record.ts';
import { FieldKind } from '../http1/field-kinds.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { Replica } from '../replicas/replica.ts';
import type { BalancerContext } from './balancer-context.ts';

/** The balancer's lines in a replica's response: which replica answered, and which version where several may. */
export function ownLines(
  { config, replicas }: BalancerContext,
  record: AccessRecord,
  replica: Replica | undefined,
  head: ResponseHead,
): string {
  const lines = config.exposeReplica ? `X-Svc-Replica: ${replica?.id ?? ''}\r\nX-Svc-Attempts: ${record.attempts}\r\n` : '';
  if (!replicas.isVersionShown || replica === undefined || replica.version === 0) return lines;
  return head.fields.kinds.includes(FieldKind.version) ? lines : `${lines}X-Svc-Version: ${replica.version}\r\n`;
}
