import { createServer } from 'node:net';

/**
 * Claims the sole right to begin to listen at a port, until the returned function is called. Rejects with EADDRINUSE
 * while another process holds the claim. The balancer's sockets share their port, so two processes that both find it
 * free could both get it. The claim is a name in the kernel's namespace (unix(7), abstract), which disappears with its
 * process.
 */
export function claimPort(port: number): Promise<() => void> {
  const claim = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    claim.once('error', reject);
    claim.listen({ path: `\0svc-port-${port}` }, () => resolve(() => void claim.close()));
  });
}
