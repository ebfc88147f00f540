import type { ServiceView } from '../../api/contract.ts';
import type { CommandContext } from '../context.ts';
import type { Leaving } from '../going-away.ts';
import { serviceNotFound } from '../name-patterns.ts';
import { takeDown, type TakeDownArgs } from '../take-down.ts';

/** `svc serve down`: takes services down, with everything they run on. */
export async function serveDown(args: TakeDownArgs, context: CommandContext): Promise<void> {
  const api = await context.connection.existing();
  const services = {
    noun: 'service',
    listCommand: 'svc serve status',
    purgeCommand: 'svc serve down NAME --purge',
    notFound: serviceNotFound,
    list: async () => (api === undefined ? [] : (await api.call('listServices')).services.map(asLeaving)),
    terminate: async (name: string) => api?.call('terminateService', { params: { name }, query: { purge: args.purge } }),
  } as const;
  await takeDown(args, services, context);
}

function asLeaving({ name, status, createdAt, reason, replicas }: ServiceView): Leaving {
  const left = replicas.filter(({ endedAt }) => endedAt === null).length;
  return { name, status, createdAt, reason, left: `${left} replica${left === 1 ? '' : 's'} left` };
}
