import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '../../domain/config.ts';
import { usableContexts } from '../../domain/kubernetes-context.ts';
import { kubeContexts } from '../../kubernetes/contexts.ts';
import { portableKubeconfig } from '../../kubernetes/portable-kubeconfig.ts';
import type { PortableFile } from '../../providers/provider.ts';
import type { PlaceState } from '../../provision/places.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { configOfController } from '../../spec/config-of-controller.ts';
import type { HighAvailabilitySecrets } from './design.ts';
import { databaseOf } from './design-of.ts';
import { inContainer } from './names.ts';
import type { ClusterSite } from './site.ts';

/** What a controller in a cluster gets, and what of it is worth telling. */
export interface GivenSecrets {
  readonly secrets: HighAvailabilitySecrets;
  /** What is given away, one line each. */
  readonly given: readonly string[];
  /** What it cannot be given, one sentence each. */
  readonly leftOut: readonly string[];
}

/** What gathering needs. */
export interface SecretSources {
  readonly config: Config;
  readonly places: readonly PlaceState[];
  readonly paths: HomePaths;
  readonly token: string;
  readonly signal: AbortSignal;
}

/**
 * What the controller is to have that only Secrets may hold: for each place that can be used here what it needs to use it as well, as little as possible;
 * its own cluster it uses as its service account.
 */
export async function gatherSecrets(key: string, site: ClusterSite, sources: SecretSources): Promise<GivenSecrets> {
  const { config, paths, token, signal } = sources;
  const files: PortableFile[] = [];
  const environment: Record<string, string> = {};
  const given: string[] = [];
  const usable = sources.places.filter(({ name, provider }) => provider !== undefined && name !== 'local');
  for (const { name, provider } of usable.filter(({ name: each }) => each !== 'kubernetes')) {
    const credentials = await provider?.credentials?.({ provider: 'kubernetes', home: inContainer.home, key }, { signal });
    if (credentials === undefined) continue;
    given.push(`${name}: ${credentials.summary}`);
    files.push(...credentials.files);
    Object.assign(environment, credentials.environment);
  }
  const others = otherClusters(config, site);
  if (others.text !== undefined) {
    files.push({ path: otherKubeconfigPath, content: others.text });
    given.push(`kubernetes: the login of ${others.contexts.join(', ')}`);
  }
  const places = usable.map(({ name }) => name);
  const contexts = [site.context, ...others.contexts];
  const text = existsSync(paths.config) ? readFileSync(paths.config, 'utf8') : '';
  files.push({ path: 'config.yaml', content: configOfController(text, { places, contexts }) });
  const database = databaseOf(config);
  if (database !== undefined) environment['SVC_DATABASE'] = database;
  return {
    secrets: { token, files, environment },
    given,
    leftOut: others.leftOut.map(({ context, reason }) => `The controller cannot use the cluster ${context}: ${reason}.`),
  };
}

const otherKubeconfigPath = inContainer.otherKubeconfig.slice(inContainer.home.length + 1);

function otherClusters(config: Config, site: ClusterSite): ReturnType<typeof portableKubeconfig> {
  const contexts = usableContexts(config.kubernetes, kubeContexts()).filter((name) => name !== site.context);
  return contexts.length === 0 ? { text: undefined, contexts: [], leftOut: [] } : portableKubeconfig(contexts);
}
