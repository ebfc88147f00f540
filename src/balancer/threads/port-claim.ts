import { createServer } from 'node:net';

/**
 * Takes the sole right to begin to listen at a port, until the function that it gives is called: our sockets share their port, so the system would
 * let two processes have it that both found it free a moment before. A name in the kernel's own space (unix(7), abstract), which goes with the process
 * that has it. Rejects with EADDRINUSE when somebody else is just about to listen there.
 */
export function claimPort(port: number): Promise<() => void> {
  const claim = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    claim.once('error', reject);
    claim.listen({ path: `\0svc-port-${port}` }, () => resolve(() => void claim.close()));
  });
}
