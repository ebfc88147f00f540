import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import { kubeContexts } from '../../kubernetes/contexts.ts';
import { quoteWord } from '../../remote/shell-quote.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { knownOfCluster } from './apply.ts';
import { readToken } from './cluster-facts.ts';
import { designOf, type KnownOfCluster } from './design-of.ts';
import { derivedKey, keyFor, type HighAvailabilityDeps } from './high-availability.ts';
import { manifests } from './manifests.ts';
import { haNames, ownedLabel } from './names.ts';
import { gatherSecrets } from './secrets-of.ts';
import { chooseSite, kubectlAt, type ClusterSite } from './site.ts';

/** What is to be printed. */
export interface ManifestWish {
  /** Instead of the one that the configuration leads to. */
  readonly context: string | undefined;
  readonly withSecrets: boolean;
}

/** Objects for a repository, and what is to be said of them. */
export interface PrintedManifests {
  readonly objects: readonly KubeDraft[];
  readonly comment: readonly string[];
}

/**
 * The objects of a controller as whoever keeps them in a repository applies them: the same each time, without secrets unless they are asked for. The cluster is
 * asked what it has; one that does not answer is taken for one of today.
 */
export async function printedManifests(wish: ManifestWish, deps: HighAvailabilityDeps): Promise<PrintedManifests> {
  const { signal, paths, places } = deps;
  const config = await deps.config();
  const site = chooseSite(config, wish.context);
  const api = deps.openApi(site);
  let known: KnownOfCluster;
  let hasAnswered = true;
  try {
    known = await knownOfCluster(site, await keyFor(site, api, signal), { api, signal }, config.serve.controller.endpointService);
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'SVC_KUBERNETES' || wish.withSecrets) throw error;
    hasAnswered = false;
    known = { key: derivedKey(kubeContexts().cluster(site.context).server, site), policyVersion: 'policy/v1', outsideHost: undefined };
  }
  const design = designOf(config, site, known);
  const secrets = wish.withSecrets
    ? (
        await gatherSecrets(known.key, site, {
          config,
          places: await places.states(),
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
      ...(wish.withSecrets ? ['This has secrets: whoever reads it can act as the controller.'] : withoutSecrets(site, known.key)),
    ],
  };
}

function withoutSecrets(site: ClusterSite, key: string): readonly string[] {
  const context = quoteWord(site.context);
  const secret = `${kubectlAt(site)} create secret generic ${haNames.token} --from-literal=token="$(openssl rand -hex 32)"`;
  return [
    '',
    'Three Secrets are not here, as they do not belong into a repository. Pods wait until there is the first one:',
    `  ${haNames.token}: key "token", which controller and balancers share`,
    `  ${haNames.environment}: variables of the controller, such as SVC_DATABASE`,
    `  ${haNames.files}: its configuration and what it needs to use other places than this cluster`,
    'With these objects printed as well, they are made, or made anew with the same token:',
    `  svc controller manifests --context ${context} --with-secrets | kubectl --context ${context} apply --server-side -f -`,
    "The first one by hand, with the label without which it is taken for somebody else's:",
    `  ${secret}`,
    `  ${kubectlAt(site)} label secret ${haNames.token} ${ownedLabel}=${key}`,
  ];
}
