import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '../../domain/config.ts';
import { usableContexts } from '../../domain/kubernetes/kubernetes-context.ts';
import { kubeContexts } from '../../kubernetes/contexts.ts';
import { portableKubeconfig } from '../../kubernetes/portable-kubeconfig.ts';
import type { PortableFile } from '../../providers/provider.ts';
import type { ProviderState } from '../../provision/providers.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { configOfController } from '../../spec/config-of-controller.ts';
import { databaseOf, type HighAvailabilitySecrets } from './design.ts';
import { inContainer } from './names.ts';
import type { KubernetesSite } from './site.ts';

/** What a controller in a Kubernetes cluster gets, described for the user. */
export interface GivenSecrets {
  readonly secrets: HighAvailabilitySecrets;
  /** Copied credentials, one line each. */
  readonly given: readonly string[];
  /** What the controller does not get, one sentence each. */
  readonly leftOut: readonly string[];
}

interface SecretSources {
  readonly config: Config;
  readonly providers: readonly ProviderState[];
  readonly paths: HomePaths;
  readonly token: string;
  readonly signal: AbortSignal;
}

/** The least credentials for each usable provider. In its own Kubernetes cluster the controller has an account. */
export async function gatherSecrets(key: string, site: KubernetesSite, sources: SecretSources): Promise<GivenSecrets> {
  const { config, paths, token, signal } = sources;
  const files: PortableFile[] = [];
  const environment: Record<string, string> = {};
  const given: string[] = [];
  const usable = sources.providers.filter(({ name, provider }) => provider !== undefined && name !== 'local');
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
  const providers = usable.map(({ name }) => name);
  const contexts = [site.context, ...others.contexts];
  const text = existsSync(paths.config) ? readFileSync(paths.config, 'utf8') : '';
  files.push({ path: 'config.yaml', content: configOfController(text, { providers, contexts }) });
  const database = databaseOf(config);
  if (database !== undefined) environment['SVC_DATABASE'] = database;
  return {
    secrets: { token, files, environment },
    given,
    leftOut: others.leftOut.map(({ context, reason }) => `The controller cannot use the cluster ${context}: ${reason}.`),
  };
}

const otherKubeconfigPath = inContainer.otherKubeconfig.slice(inContainer.home.length + 1);

function otherClusters(config: Config, site: KubernetesSite): ReturnType<typeof portableKubeconfig> {
  const contexts = usableContexts(config.kubernetes, kubeContexts()).filter((name) => name !== site.context);
  return contexts.length === 0 ? { text: undefined, contexts: [], leftOut: [] } : portableKubeconfig(contexts);
}
