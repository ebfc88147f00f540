import type { Clock } from '../../shared/clock.ts';
import { DialError, dialReplica } from '../../shared/dial.ts';
import { runSsh } from './ssh-process.ts';
import type { SshTarget } from './ssh-target.ts';

/** A machine that can be reached directly answers within this, ms; five round trips over an ocean. */
const dialTimeoutMs = 1_500;

const configTimeoutMs = 5_000;

/** The host to connect to without SSH: what an alias of the user's configuration stands for; undefined where SSH goes through another machine. */
export async function directHost(target: SshTarget, clock: Clock): Promise<string | undefined> {
  if (target.proxyJump !== undefined) return undefined;
  if (!target.userConfig) return target.host;
  const { said, exitCode } = await runSsh(['-G', '--', target.host], { userConfig: true, timeoutMs: configTimeoutMs, clock });
  if (exitCode !== 0 || /^proxy(?:jump|command) (?!none)/m.test(said)) return undefined;
  return /^hostname (.+)$/m.exec(said)?.[1] ?? target.host;
}

/** Whether somebody accepts connections on the port, as seen from here. */
export async function isOpen(host: string, port: number, clock: Clock): Promise<boolean> {
  try {
    (await dialReplica({ kind: 'tcp', host, port }, { timeoutMs: dialTimeoutMs, clock })).destroy();
    return true;
  } catch (error) {
    if (error instanceof DialError) return false;
    throw error;
  }
}
