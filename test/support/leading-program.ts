import { connect } from 'node:net';
import { LeaderElection } from '../../src/controller/leadership/leader-lease.ts';
import { lostLeaseExitCode } from '../../src/controller/leadership/lease-source.ts';
import { fileFence, watchFence } from '../../src/controller/leadership/fence-file.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { messageOf } from '../../src/shared/errors.ts';

/**
 * A controller that only leads: `node leading-program.ts NAME DATABASE FENCE PORT`. As leader it continuously sends its
 * name and term to a provider on that port, over one connection, each time behind the fence. SIGTERM makes it release
 * the lease and exit. SIGUSR2 makes it stop as by SIGSTOP, but never between the check of the fence and the call behind
 * it: that call is already on its way. Prints `NAME stands by` once it has seen another leader, and `NAME leads with
 * term TERM`.
 */

const [, , name = '', path = '', fencePath = '', port = ''] = process.argv;
const end = (reason: string): never => {
  process.stdout.write(`${name} ends: ${reason}\n`);
  process.exit(lostLeaseExitCode);
};
const election = new LeaderElection({ kubernetes: undefined, state: { path, database: undefined } }, fencePath, systemClock, {
  otherLeads: reportStandby,
  lost: end,
});
let isStandby = false;
function reportStandby(): void {
  if (!isStandby) process.stdout.write(`${name} stands by\n`);
  isStandby = true;
}
let isExiting = false;
let isToStop = false;
process.on('SIGUSR2', () => (isToStop = true));
process.once('SIGTERM', () => {
  isExiting = true;
  void election.release().then(() => process.exit(0));
});

const term = await election.elected;
process.stdout.write(`${name} leads with term ${term}\n`);
const fence = fileFence(fencePath, term, systemClock);
// Releasing the lease closes the fence as well. As in the controller, that is no loss of the lease.
watchFence(fence, systemClock, (error) => isExiting || end(messageOf(error)));
const provider = connect(Number(port), '127.0.0.1');
provider.on('error', () => undefined);
for (;;) {
  try {
    fence.check();
    provider.write(`${name} ${term}\n`);
  } catch {
    // watchFence ends the process.
  }
  if (isToStop) {
    isToStop = false;
    process.kill(process.pid, 'SIGSTOP');
  }
  await systemClock.sleep(5);
}
