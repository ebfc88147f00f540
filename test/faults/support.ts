import type { BalancerConfig } from '../../src/domain/balancer-link.ts';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../support/balancer.ts';
import type { Behaviour, JournalEntry } from '../support/faulty-replica/behaviour.ts';
import { waitFor } from '../support/wait-for.ts';
import { withFaultyReplicas, type FaultyReplica } from '../support/faulty-replica/faulty-replica.ts';

/** A balancer before faulty replicas, whose ids are 1, 2, ... in the given order. */
export async function withFaultyService(
  behaviours: readonly Behaviour[],
  use: (balancer: RunningBalancer, replicas: readonly FaultyReplica[]) => Promise<void>,
  changes: Partial<BalancerConfig> = {},
): Promise<void> {
  await withFaultyReplicas(behaviours, async (replicas) => {
    const endpointSet = replicas.map(({ port }, index) => aBalancerReplica(port, index + 1));
    await withBalancer(endpointSet, (balancer) => use(balancer, replicas), changes);
  });
}

/** Returns how often any replica began each request, by request id. */
export function executions(replicas: readonly { journal(): readonly JournalEntry[] }[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { what, id } of replicas.flatMap((replica) => replica.journal())) {
    if (what === 'got') counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** Attempts of all requests together, from the access log, which includes attempts without a reply. */
export async function attemptsLogged(balancer: RunningBalancer, requests: number): Promise<number> {
  const lines = await balancer.accessLog(requests);
  return lines.reduce((sum, line) => sum + Number(line['attempts'] ?? 0), 0);
}

/** Waits for zero counts in a report sent after the call: an older report may precede the requests. */
export async function countsAtZero({ link }: RunningBalancer): Promise<RunningStats> {
  const seen = link.of('stats').length;
  return waitFor(
    'a report of zeros',
    () =>
      link
        .of('stats')
        .find(({ inFlight, queued }, index) => index >= seen && queued === 0 && Object.values(inFlight).every((count) => count === 0)),
    { describe: () => link.lastStats },
  );
}

type RunningStats = NonNullable<RunningBalancer['link']['lastStats']>;
