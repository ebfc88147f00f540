import { readFile } from 'node:fs/promises';
import type { ProxiedService } from '../../domain/edge-proxy/edge-proxy.ts';
import type { ServiceSpec } from '../../domain/task.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import type { ServiceRecord } from '../../domain/records.ts';
import { SvcError } from '../../shared/errors.ts';
import { balancerConfig } from './balancer-config.ts';

/** Configuration of a service for edge proxies, with its certificate. Rejects when that cannot be read. */
export async function hostedService(service: ServiceRecord, spec: ServiceSpec, files: ServicePaths): Promise<ProxiedService> {
  const { tls, loadBalancer } = spec;
  // Without them, the endpoint would be open to all.
  if (tls?.clientCa !== undefined)
    throw new SvcError('SVC_NOT_SUPPORTED', 'Edge proxies cannot demand certificates of clients (tls.client_ca).');
  const config = balancerConfig(service, spec, files, 1);
  return {
    key: service.key,
    config: { ...config, threads: loadBalancer.threads ?? null, metricsPort: null, httpRedirectPort: null, tls: null },
    tls: tls === undefined ? null : { key: await readFile(tls.keyfile, 'utf8'), cert: await readFile(tls.certfile, 'utf8') },
  };
}
