import { expect, test } from 'vitest';
import { waitFor } from '../../../test/support/wait-for.ts';
import { claimPort } from './port-claim.ts';

/** Above the range of ports, so no other process can use it. */
const port = 100_000 + process.pid;

test('a second claim on a port is refused until the first is released', async () => {
  const release = await claimPort(port);
  await expect(claimPort(port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  const other = await claimPort(port + 1);
  other();
  release();
  const again = await waitFor('it to be free again', () => claimPort(port).catch(() => undefined), { everyMs: 5 });
  again();
});
