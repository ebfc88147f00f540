import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { RunningHost } from '../../../test/support/balancer-hosts.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

async function isListening(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test('a host that is told to end while it still comes up ends in order', { timeout: 60_000 }, () =>
  withTempHome(async (dir) => {
    // As in a pod, where it finds out first who the others are; here nobody says so.
    const kubeconfig = join(dir, 'kubeconfig');
    const contexts = [{ name: 'in-cluster', context: { cluster: 'nowhere' } }];
    writeFileSync(kubeconfig, JSON.stringify({ contexts, clusters: [{ name: 'nowhere', cluster: { server: 'https://127.0.0.1:1' } }] }));
    vi.stubEnv('SVC_BALANCER_PEERS', 'kubernetes').stubEnv('KUBECONFIG', kubeconfig);
    const host = new RunningHost(dir, 2, await freePort('0.0.0.0'));
    host.start();
    const { exited } = host;
    try {
      // The system takes connections while the program is still busy with its beginning.
      await waitFor('the host to listen', () => isListening(host.member.host, host.member.port), { everyMs: 1 });
      host.signal('SIGTERM');
      expect(await exited).toEqual([0, null]);
    } finally {
      host.signal('SIGKILL');
    }
  }),
);
