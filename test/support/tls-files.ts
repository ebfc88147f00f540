import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BalancerConfig } from '../../src/domain/balancer-link.ts';
import { aBalancerReplica, balancerConfig, RunningBalancer } from './balancer.ts';
import { selfSigned } from './certificate.ts';
import { withTempHome } from './temp-home.ts';

/** Writes a new key and its certificate into a folder; returns their paths. */
export function writeTlsFiles(dir: string): { readonly keyFile: string; readonly certFile: string } {
  const { key, cert } = selfSigned();
  const paths = { keyFile: join(dir, 'tls.key'), certFile: join(dir, 'tls.crt') };
  writeFileSync(paths.keyFile, key, { mode: 0o600 });
  writeFileSync(paths.certFile, cert);
  return paths;
}

/** Runs `use` with a balancer that serves TLS before replicas at the given ports. */
export async function withTlsBalancer(
  ports: readonly number[],
  use: (balancer: RunningBalancer, url: string, dir: string) => Promise<void>,
  changes: Partial<BalancerConfig> = {},
  openFiles?: number,
): Promise<void> {
  await withTempHome(async (dir) => {
    const balancer = await RunningBalancer.start(balancerConfig(dir, { tls: writeTlsFiles(dir), ...changes }), openFiles);
    try {
      await balancer.link.setReplicas(ports.map((port, index) => aBalancerReplica(port, index + 1)));
      await use(balancer, `https://127.0.0.1:${balancer.port}`, dir);
    } finally {
      await balancer.stop();
    }
  });
}
