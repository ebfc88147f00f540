import { SvcError } from '../shared/errors.ts';
import type { ResourceAlternatives, Resources } from './task.ts';

const localProvider = 'local';

/** A pod is lost with its node. So in Kubernetes the controller is highly available if configured, otherwise local. */
const kubernetes = 'kubernetes';

/** The machine of the controller: this one, or the best one of the alternatives. */
export type ControllerChoice = { readonly kind: 'local' } | { readonly kind: 'remote'; readonly alternatives: ResourceAlternatives };

/** Four vCPUs, enough for four services each, and disk for logs and copies of working directories. */
const smallMachine: Resources = {
  cloud: undefined,
  region: undefined,
  zone: undefined,
  cpus: { value: 4, atLeast: true },
  memory: undefined,
  accelerator: undefined,
  acceleratorMemory: undefined,
  instanceType: undefined,
  useSpot: false,
  diskSizeGb: 200,
  diskTier: undefined,
  networkTier: undefined,
  ports: [],
  imageId: undefined,
  labels: {},
  maxHourlyCost: undefined,
  otherFields: [],
};

/**
 * Chooses where the controller runs. As configured; otherwise a small on-demand machine of an enabled provider, or this
 * machine when no other provider is enabled.
 *
 * `near`: the resources of the service that needs the controller. All requests pass through the controller's machine,
 * so without a configuration it goes to the location of the replicas. It stays local when those are local or in
 * Kubernetes. Throws SVC_NOT_SUPPORTED when the configuration asks for a single machine in Kubernetes.
 */
export function chooseController(
  configured: ResourceAlternatives | undefined,
  enabled: readonly string[],
  near?: ResourceAlternatives,
): ControllerChoice {
  if (configured !== undefined) {
    if (configured.choices.every(({ cloud }) => cloud === localProvider)) return { kind: 'local' };
    if (configured.choices.some(({ cloud }) => cloud === kubernetes)) throw needsHighAvailability();
    return { kind: 'remote', alternatives: { ...configured, choices: configured.choices.map(withDefaults) } };
  }
  const remoteProviders = enabled.filter((name) => name !== localProvider && name !== kubernetes);
  if (remoteProviders.length === 0) return { kind: 'local' };
  const sites = (near?.choices ?? []).map(({ cloud, region }) => ({ cloud, region }));
  const remoteSites = sites.filter(({ cloud }) => cloud !== localProvider && cloud !== kubernetes);
  if (sites.length > 0 && remoteSites.length === 0) return { kind: 'local' };
  const distinct = [...new Map(remoteSites.map((site) => [`${site.cloud}/${site.region}`, site])).values()];
  const anywhere = enabled.includes(kubernetes) ? remoteProviders.map((cloud) => ({ ...smallMachine, cloud })) : [smallMachine];
  const choices = distinct.flatMap((site) => (site.cloud === undefined ? anywhere : [{ ...smallMachine, ...site }]));
  return { kind: 'remote', alternatives: { order: near?.order ?? 'any', choices: choices.length === 0 ? anywhere : choices } };
}

function needsHighAvailability(): SvcError {
  return new SvcError(
    'SVC_NOT_SUPPORTED',
    'A controller in a Kubernetes cluster is made to survive its node; serve.controller.resources alone cannot ask for one.',
    {
      hint: 'Write serve.controller.high_availability: true in config.yaml, or infra: local to keep the controller here.',
    },
  );
}

function withDefaults(resources: Resources): Resources {
  const asksForSize = resources.cpus !== undefined || resources.memory !== undefined || resources.instanceType !== undefined;
  return asksForSize ? resources : { ...resources, cpus: smallMachine.cpus };
}

/** How many services a controller runs, by a formula from similar tools. Each service has two processes of its own. */
export function serviceLimit(vcpus: number, memoryGib: number): number {
  return Math.max(1, Math.min(4 * Math.floor(vcpus), Math.floor(memoryGib)));
}
