import { SvcError } from '../../shared/errors.ts';
import { controllerName } from '../listing/cluster-listing.ts';
import type { CommandContext } from '../context.ts';
import { clusterNotFound } from '../name-patterns.ts';
import { terminateNamed, type TerminateArgs } from '../terminate-named.ts';

/** `svc down`: removes clusters, but not the controller. */
export async function down(args: TerminateArgs, context: CommandContext): Promise<void> {
  if (args.names.includes(controllerName)) {
    throw new SvcError('SVC_USAGE', 'The controller is not terminated like a cluster.', { hint: 'Run: svc controller stop' });
  }
  const api = await context.connection.existing();
  const clusters = {
    noun: 'cluster',
    listCommand: 'svc status',
    purgeCommand: 'svc down NAME --purge',
    notFound: clusterNotFound,
    list: async () =>
      api === undefined
        ? []
        : (await api.call('listClusters')).clusters.map(({ name, status, launchedAt, reason }) => ({
            name,
            status,
            createdAt: launchedAt,
            reason,
            left: status.toLowerCase(),
          })),
    terminate: async (name: string) => api?.call('terminateCluster', { params: { name }, query: { purge: args.purge } }),
  } as const;
  await terminateNamed(args, clusters, context);
}
