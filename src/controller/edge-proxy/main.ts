import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getuid } from 'node:process';
import { edgeProxyPodLabels } from '../../domain/edge-proxy/edge-proxy.ts';
import { passesReadiness } from '../../domain/edge-proxy/edge-proxy-health.ts';
import { systemClock } from '../../shared/clock.ts';
import { svcHome } from '../../shared/env.ts';
import { createLogger } from '../../shared/log.ts';
import { homePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { EdgeProxyServer } from './edge-proxy-server.ts';
import { HostedServices } from './hosted-services.ts';
import { edgeProxySettings, runProgram } from './edge-proxy-program.ts';
import { readSharedKey } from './shared-key.ts';
import { TermMemory } from './term-memory.ts';

/** How long clients may still send requests to a pod outside the Service, ms: every node must learn of it. */
const forgetMs = 3_000;

const log = createLogger('balancer-host');
const clock = systemClock;

/** Serves what the leading controller assigned, and continues while there is no leader. */
async function main(): Promise<void> {
  // Installed first: a signal during startup must not kill the process while its balancers serve.
  const end = terminationSignal();
  const settings = edgeProxySettings();
  const key = readSharedKey(settings.tokenFile);
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  prepareHome(paths);
  const { labelsFile } = settings;
  let isEnding = false;
  let wasAdmitted = false;
  const passesProbe = (): boolean => {
    const isReady = services.isReady && !isEnding;
    if (labelsFile === undefined) return isReady;
    const passes = passesReadiness({ isReady, isInformed: services.isInformed, isAlone: isAlone(labelsFile), wasAdmitted });
    wasAdmitted ||= passes;
    return passes;
  };
  const services: HostedServices = new HostedServices({ paths, address: settings.address, clock, log }, () => server.reportState());
  const server = new EdgeProxyServer({ key, services, terms: new TermMemory(join(paths.home, 'term')), clock, log, isReady: passesProbe });
  const port = await server.listen(settings.port, settings.address);
  services.recall();
  log.info({ port }, 'the edge proxy is running');

  await end;
  log.info('the edge proxy ends: requests in flight may end');
  isEnding = true;
  if (labelsFile !== undefined) await clock.sleep(forgetMs);
  await services.end();
  server.close();
}

function terminationSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once('SIGTERM', resolve);
  process.once('SIGINT', resolve);
  return promise;
}

/** Whether a health checker labelled this pod as the only one that serves. Kubernetes keeps the file current. */
function isAlone(labelsFile: string): boolean {
  try {
    return readFileSync(labelsFile, 'utf8').split('\n').includes(`${edgeProxyPodLabels.alone}="true"`);
  } catch {
    return false;
  }
}

await runProgram(main, log);
