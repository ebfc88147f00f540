import { connect } from 'node:net';
import { Candidacy } from '../../src/controller/leadership/candidacy.ts';
import { lostLeaseExitCode } from '../../src/controller/leadership/exit-code.ts';
import { fileFence, watchFence } from '../../src/controller/leadership/fence-file.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { messageOf } from '../../src/shared/errors.ts';

/**
 * A controller that does nothing but lead: `node leading-program.ts NAME DATABASE FENCE PORT`. Once it leads it tells a place on that port its name and term, over
 * one connection and as often as it can, each time behind the fence. SIGTERM makes it give the lease back and end.
 */

const [, , name = '', path = '', fencePath = '', port = ''] = process.argv;
const end = (why: string): never => {
  process.stdout.write(`${name} ends: ${why}\n`);
  process.exit(lostLeaseExitCode);
};
const candidacy = new Candidacy({ kubernetes: undefined, state: { path, database: undefined } }, fencePath, systemClock, {
  otherLeads: () => undefined,
  lost: end,
});
let isLeaving = false;
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
  await systemClock.sleep(5);
}
