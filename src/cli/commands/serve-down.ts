import type { ServiceView } from '../../api/contract.ts';
import type { CommandContext } from '../context.ts';
import type { TerminatingItem } from '../wait-until-gone.ts';
import { serviceNotFound } from '../name-patterns.ts';
import { terminateNamed, type TerminateArgs } from '../terminate-named.ts';

/** `svc serve down`: terminates services with their replicas and machines. */
export async function serveDown(args: TerminateArgs, context: CommandContext): Promise<void> {
  const api = await context.connection.existing();
  const services = {
    noun: 'service',
    listCommand: 'svc serve status',
    purgeCommand: 'svc serve down NAME --purge',
    notFound: serviceNotFound,
    list: async () => (api === undefined ? [] : (await api.call('listServices')).services.map(asTerminating)),
    terminate: async (name: string) => api?.call('terminateService', { params: { name }, query: { purge: args.purge } }),
  } as const;
  await terminateNamed(args, services, context);
}

function asTerminating({ name, status, createdAt, reason, replicas }: ServiceView): TerminatingItem {
  const left = replicas.filter(({ endedAt }) => endedAt === null).length;
  return { name, status, createdAt, reason, left: `${left} replica${left === 1 ? '' : 's'} left` };
}
