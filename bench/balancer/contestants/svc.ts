import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { aBalancerReplica, balancerConfig, ControlLink } from '../../../test/support/balancer.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Contestant, ProxyOptions, RunningProxy } from '../contestant.ts';
import { startProgram } from '../processes.ts';

const program = join(import.meta.dirname, '../../../src/balancer/main.ts');

/**
 * This project's balancer as the daemon starts it, with all default work: strict parser, access log to a file, metrics,
 * counts for the reconciler.
 */
export function createSvc(name: string, threads: number): Contestant {
  return { name, start: (options) => start(options, threads) };
}

/** The balancer on one thread. */
export const svc = createSvc('svc', 1);

async function start({ dir, replicaPorts, profileDir }: ProxyOptions, threads: number): Promise<RunningProxy> {
  const path = join(dir, 'balancer.json');
  const config = balancerConfig(dir, { threads, firstByteTimeoutMs: 300_000, idleTimeoutMs: 300_000 });
  writeFileSync(path, JSON.stringify(config));
  const profiling = profileDir === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profileDir];
  const balancer = startProgram(process.execPath, [...profiling, program, path]);
  const listening = await waitFor('the balancer to listen', () => /"port":(\d+).*"msg":"Listening"/.exec(balancer.output()) ?? undefined, {
    everyMs: 10,
    describe: balancer.output,
  });
  const link = new ControlLink(config.controlSocket);
  await link.setReplicas(replicaPorts.map((port, index) => aBalancerReplica(port, index + 1)));
  const stop = async (): Promise<void> => {
    link.close();
    // Only a process that ends in order writes its profile; otherwise SIGKILL is faster.
    await balancer.stop(profileDir === undefined ? 'SIGKILL' : 'SIGTERM');
  };
  return { port: Number(listening[1]), pid: balancer.pid, stop };
}
