import { expect, test } from 'vitest';
import { claimPort } from './port-claim.ts';

/** Above the range of ports, so that nobody else can mean it. */
const port = 100_000 + process.pid;

test('of two that are about to listen at a port one is refused, until the other has begun', async () => {
  const release = await claimPort(port);
  await expect(claimPort(port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  const other = await claimPort(port + 1);
  other();
  release();
  await expect
    .poll(async () =>
      claimPort(port).then(
        (again) => again() ?? true,
        () => false,
      ),
    )
    .toBe(true);
});
