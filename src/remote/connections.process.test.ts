import { expect, test } from 'vitest';
import { withLocalProvider } from '../../test/support/local-provider.ts';
import { runInside } from '../../test/support/run-inside.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { whyClosed } from './tcp-table.ts';

test("the table of a local machine shows the listeners of its program, not those of this computer's", async () => {
  await withLocalProvider({}, async (provider) => {
    const { remote } = await provider.machine('a');
    expect(await remote.connections?.()).toBe('');
    const script = `exec '${process.execPath}' -e 'require("node:net").createServer().listen(9123)'`;
    const running = runInside(remote, script);
    const found = async (): Promise<string | undefined> => whyClosed((await remote.connections?.()) ?? '', 8080);
    await waitFor('the listener', async () => (await found()) !== undefined);
    expect(await found()).toBe(
      'nothing listens on port 8080, but a program listens on port 9123; change resources.ports, or the port of the program',
    );
    void running;
  });
});
