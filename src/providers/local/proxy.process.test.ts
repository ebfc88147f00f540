import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectNoLeaks } from '../../../test/support/leaks.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { runCommand } from '../../remote/run-command.ts';
import { systemClock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { homePaths } from '../../shared/paths.ts';
import { chooseIsolation } from './isolation.ts';
import { writeEnterFiles, filesIn } from './machine-store.ts';

/** An address of this computer that is not loopback: packets to it do not leave the computer. */
const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

test('http_proxy works from the first moment, and the proxy ends with the machine', async ({ skip }) => {
  await withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    const { kind } = await chooseIsolation({ paths, clock: systemClock }, 'auto');
    if (kind === 'none' || ownAddress === undefined) return skip();
    const files = filesIn(join(home, 'machine'), home, 'x');
    const server = createServer((_asked, reply) => reply.end('outside'));
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    const bound = server.address();
    const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
    try {
      writeEnterFiles(files, paths, kind, 'proxy');
      // As on a busy machine: everything else is up before the forwarder.
      writeFileSync(files.forwarder, `await new Promise((go) => setTimeout(go, 1_000));\n${readFileSync(files.forwarder, 'utf8')}`);
      const program = `for (const host of ['${ownAddress}', '127.0.0.1']) await fetch('http://' + host + ':${port}').then((r) => r.text()).catch((e) => e.cause?.code).then(console.log)`;
      const argv = ['sh', files.enter, process.execPath, '--input-type=module', '-e', program];
      const { stdout, stderr } = await runCommand(argv, { env: { ...wholeEnv(), SVC_HOME: home }, clock: systemClock, timeoutMs: 300_000 });
      expect([stdout, stderr]).toEqual(['outside\nECONNREFUSED\n', '']);
      expect(existsSync(files.proxySocket)).toBe(true);
    } finally {
      server.close();
    }
    // Socket files stay until their machine is destroyed.
    rmSync(files.socket);
    await expectNoLeaks(home);
    return undefined;
  });
});
