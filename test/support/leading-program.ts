import { connect } from 'node:net';
import { Candidacy } from '../../src/controller/leadership/candidacy.ts';
import { lostLeaseExitCode } from '../../src/controller/leadership/exit-code.ts';
import { fileFence, watchFence } from '../../src/controller/leadership/fence-file.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { messageOf } from '../../src/shared/errors.ts';

/**
 * A controller that does nothing but lead: `node leading-program.ts NAME DATABASE FENCE PORT`. Once it leads it tells a place on that port its name and term, over
 * one connection and as often as it can, each time behind the fence. SIGTERM makes it give the lease back and end. SIGUSR2 makes it stop as by SIGSTOP, but
 * never between a look at the fence and the call behind it: that call is on its way, and nothing holds it back.
 * Prints `NAME stands by` once another one has been seen to lead, and `NAME leads with term TERM`.
 */

const [, , name = '', path = '', fencePath = '', port = ''] = process.argv;
const end = (why: string): never => {
  process.stdout.write(`${name} ends: ${why}\n`);
  process.exit(lostLeaseExitCode);
};
const candidacy = new Candidacy({ kubernetes: undefined, state: { path, database: undefined } }, fencePath, systemClock, {
  otherLeads: standBy,
  lost: end,
});
let standsBy = false;
function standBy(): void {
  if (!standsBy) process.stdout.write(`${name} stands by\n`);
  standsBy = true;
}
let isLeaving = false;
let isToStop = false;
process.on('SIGUSR2', () => (isToStop = true));
process.once('SIGTERM', () => {
  isLeaving = true;
  void candidacy.release().then(() => process.exit(0));
});

const term = await candidacy.elected;
process.stdout.write(`${name} leads with term ${term}\n`);
const fence = fileFence(fencePath, term, systemClock);
// Giving the lease back closes the fence as well: that is no loss, as in the controller.
watchFence(fence, systemClock, (error) => isLeaving || end(messageOf(error)));
const place = connect(Number(port), '127.0.0.1');
place.on('error', () => undefined);
for (;;) {
  try {
    fence.check();
    place.write(`${name} ${term}\n`);
  } catch {
    // The watch ends the process.
  }
  if (isToStop) {
    isToStop = false;
    process.kill(process.pid, 'SIGSTOP');
  }
  await systemClock.sleep(5);
}
