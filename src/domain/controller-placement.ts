import { SvcError } from '../shared/errors.ts';
import type { ResourceAlternatives, Resources } from './task.ts';

/** The place that needs no machine: where the command is run. */
const here = 'local';

/** Where a single pod would be a controller that is lost with its node: there it is made to survive that, when the configuration says so, or stays here. */
const kubernetes = 'kubernetes';

/** Where the controller is to be: on this machine, or on the best machine of the alternatives. */
export type ControllerChoice = { readonly kind: 'here' } | { readonly kind: 'elsewhere'; readonly alternatives: ResourceAlternatives };

/** A small machine for any enabled place: four vCPUs, as many services fit as vCPUs times four, and room for logs and copies of working directories. */
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
 * What the configuration says, with the defaults of a controller; without it a small on-demand machine of an enabled place, and this machine where
 * no other place is enabled. `enabled` are names of places. `near`: what the service that needs it asks for; all requests pass through the
 * controller's machine, so without a configuration it goes where the replicas are to be, and stays here for one that is to be here, or in a cluster.
 * Throws SVC_NOT_SUPPORTED when the configuration wants one machine of a cluster.
 */
export function chooseController(
  configured: ResourceAlternatives | undefined,
  enabled: readonly string[],
  near?: ResourceAlternatives,
): ControllerChoice {
  if (configured !== undefined) {
    if (configured.choices.every(({ cloud }) => cloud === here)) return { kind: 'here' };
    if (configured.choices.some(({ cloud }) => cloud === kubernetes)) throw needsHighAvailability();
    return { kind: 'elsewhere', alternatives: { ...configured, choices: configured.choices.map(withDefaults) } };
  }
  const hosts = enabled.filter((name) => name !== here && name !== kubernetes);
  if (hosts.length === 0) return { kind: 'here' };
  const sites = (near?.choices ?? []).map(({ cloud, region }) => ({ cloud, region }));
  const elsewhere = sites.filter(({ cloud }) => cloud !== here && cloud !== kubernetes);
  if (sites.length > 0 && elsewhere.length === 0) return { kind: 'here' };
  const distinct = [...new Map(elsewhere.map((site) => [`${site.cloud}/${site.region}`, site])).values()];
  const anywhere = enabled.includes(kubernetes) ? hosts.map((cloud) => ({ ...smallMachine, cloud })) : [smallMachine];
  const choices = distinct.flatMap((site) => (site.cloud === undefined ? anywhere : [{ ...smallMachine, ...site }]));
  return { kind: 'elsewhere', alternatives: { order: near?.order ?? 'any', choices: choices.length === 0 ? anywhere : choices } };
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
