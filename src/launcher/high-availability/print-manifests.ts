import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import { kubeContexts } from '../../kubernetes/contexts.ts';
import { quoteWord } from '../../remote/shell-quote.ts';
import { settledStates } from '../../provision/providers.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { readClusterFacts, readToken } from './cluster-facts.ts';
import { designOf, type ClusterFacts } from './design.ts';
import { derivedKey, keyFor, type HighAvailabilityDeps } from './high-availability.ts';
import { manifests } from './manifests.ts';
import { haNames, ownedLabel } from './names.ts';
import { gatherSecrets } from './secrets-of.ts';
import { chooseSite, kubectlAt, type KubernetesSite } from './site.ts';

interface ManifestOptions {
  readonly context: string | undefined;
  readonly withSecrets: boolean;
}

interface PrintedManifests {
  readonly objects: readonly KubeDraft[];
  readonly comment: readonly string[];
}

/**
 * For users who keep the objects in a repository and apply them. The result is constant, and has secrets only on
 * request. It depends on the Kubernetes cluster's API versions; if it does not answer, current ones are assumed.
 */
export async function printedManifests(options: ManifestOptions, deps: HighAvailabilityDeps): Promise<PrintedManifests> {
  const { signal, paths, providers } = deps;
  const config = await deps.config();
  const site = chooseSite(config, options.context);
  const api = deps.openApi(site);
  let known: ClusterFacts;
  let hasAnswered = true;
  try {
    known = await readClusterFacts(site, await keyFor(site, api, signal), { api, signal }, config.serve.controller.endpointService);
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'SVC_KUBERNETES' || options.withSecrets) throw error;
    hasAnswered = false;
    known = { key: derivedKey(kubeContexts().cluster(site.context).server, site), policyVersion: 'policy/v1', outsideHost: undefined };
  }
  const design = designOf(config, site, known);
  const secrets = options.withSecrets
    ? (
        await gatherSecrets(known.key, site, {
          config,
          providers: await settledStates(() => providers.states(), deps.onStep, signal),
          paths,
          token: (await readToken(api, site, signal)) ?? randomHex(32),
          signal,
        })
      ).secrets
    : undefined;
  return {
    objects: manifests(design, secrets, undefined),
    comment: [
      `A controller of svc that survives its node, for the context ${site.context}: docs/high-availability.md.`,
      ...(hasAnswered ? [] : ['The cluster did not answer: these are for one of Kubernetes 1.21 or later.']),
      ...(options.withSecrets ? ['This has secrets: they let its reader act as the controller.'] : withoutSecrets(site, known.key)),
    ],
  };
}

function withoutSecrets(site: KubernetesSite, key: string): readonly string[] {
  const context = quoteWord(site.context);
  const secret = `${kubectlAt(site)} create secret generic ${haNames.token} --from-literal=token="$(openssl rand -hex 32)"`;
  return [
    '',
    'Three Secrets are missing here, because they do not belong in a repository. Pods wait for the first one:',
    `  ${haNames.token}: key "token", which controller and balancers share`,
    `  ${haNames.environment}: variables of the controller, such as SVC_DATABASE`,
    `  ${haNames.files}: its configuration and credentials for providers other than this cluster`,
    'This prints them as well and applies all objects; the token stays the same:',
    `  svc controller manifests --context ${context} --with-secrets | kubectl --context ${context} apply --server-side -f -`,
    'The first one by hand; the label marks it as belonging to svc:',
    `  ${secret}`,
    `  ${kubectlAt(site)} label secret ${haNames.token} ${ownedLabel}=${key}`,
  ];
}
