import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { RunningEdgeProxy } from '../../../test/support/edge-proxies.ts';
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

test('SIGTERM during the start of an edge proxy ends it with exit code 0', () =>
  withTempHome(async (dir) => {
    // As in a pod.
    vi.stubEnv('SVC_BALANCER_LABELS_FILE', join(dir, 'labels'));
    const proxy = new RunningEdgeProxy(dir, 2, await freePort('0.0.0.0'));
    proxy.start();
    const { exited } = proxy;
    try {
      // The kernel accepts connections while the program is still starting.
      await waitFor('the host to listen', () => isListening(proxy.member.host, proxy.member.port), { everyMs: 1 });
      proxy.signal('SIGTERM');
      expect(await exited).toEqual([0, null]);
    } finally {
      proxy.signal('SIGKILL');
    }
  }));
