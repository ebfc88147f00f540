import { createServer } from 'node:net';

/**
 * Claims the sole right to begin to listen at a port, until the returned function is called.
 *
 * Our sockets share their port. Without a claim, two processes that both just found the port free could both get it.
 * The claim is a name in the kernel's own namespace (unix(7), abstract), which disappears with its process. Rejects
 * with EADDRINUSE while another process holds the claim.
 */
export function claimPort(port: number): Promise<() => void> {
  const claim = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    claim.once('error', reject);
    claim.listen({ path: `\0svc-port-${port}` }, () => resolve(() => void claim.close()));
  });
}
