import type { Clock } from '../../shared/clock.ts';
import { servicePaths, type HomePaths } from '../../shared/paths.ts';
import { foldersIn } from '../folders-in.ts';
import { greet } from '../greeting.ts';
import { endProcess } from '../supervisor.ts';

const greetingMs = 2_000;
/** A balancer lets requests under way end within half a minute. */
const balancerGraceMs = 35_000;

/**
 * Ends what an earlier leader of this home left running, once another controller is known to lead: it has endpoints of its own, and these here would go on
 * with replicas that are not there any more.
 */
export async function endLeftovers(paths: HomePaths, clock: Clock): Promise<void> {
  const ended = foldersIn(paths.servicesDir).map(async (key) => {
    const { reconcilerSocket, balancerSocket } = servicePaths(paths, key);
    await Promise.all([endAt(reconcilerSocket, 0, clock), endAt(balancerSocket, balancerGraceMs, clock)]);
  });
  await Promise.all(ended);
}

async function endAt(socketPath: string, graceMs: number, clock: Clock): Promise<void> {
  const greeting = await greet(socketPath, { clock, timeoutMs: greetingMs });
  if (greeting === undefined) return;
  greeting.socket.destroy();
  await endProcess(greeting.identity, graceMs, clock);
}
