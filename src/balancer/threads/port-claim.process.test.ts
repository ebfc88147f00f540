import { expect, test } from 'vitest';
import { waitFor } from '../../../test/support/wait-for.ts';
import { claimPort } from './port-claim.ts';

/** Above the range of ports, so that nobody else can mean it. */
const port = 100_000 + process.pid;

test('of two that are about to listen at a port one is refused, until the other has begun', async () => {
  const release = await claimPort(port);
  await expect(claimPort(port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  const other = await claimPort(port + 1);
  other();
  release();
  const again = await waitFor('it to be free again', () => claimPort(port).catch(() => undefined), { everyMs: 5 });
  again();
});
