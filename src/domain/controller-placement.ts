import type { ResourceAlternatives, Resources } from './task.ts';

/** The place that needs no machine: where the command is run. */
const here = 'local';

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
 * controller's machine, so without a configuration it goes where the replicas are to be, and stays here for one that is to be here.
 */
export function chooseController(
  configured: ResourceAlternatives | undefined,
  enabled: readonly string[],
  near?: ResourceAlternatives,
): ControllerChoice {
  if (configured !== undefined) {
    if (configured.choices.every(({ cloud }) => cloud === here)) return { kind: 'here' };
    return { kind: 'elsewhere', alternatives: { ...configured, choices: configured.choices.map(withDefaults) } };
  }
  if (enabled.every((name) => name === here)) return { kind: 'here' };
  const sites = (near?.choices ?? []).map(({ cloud, region }) => ({ cloud, region }));
  if (sites.length > 0 && sites.every(({ cloud }) => cloud === here)) return { kind: 'here' };
  const elsewhere = sites.filter(({ cloud }) => cloud !== here);
  const distinct = [...new Map(elsewhere.map((site) => [`${site.cloud}/${site.region}`, site])).values()];
  const choices = distinct.length === 0 ? [smallMachine] : distinct.map((site) => ({ ...smallMachine, ...site }));
  return { kind: 'elsewhere', alternatives: { order: near?.order ?? 'any', choices } };
}

function withDefaults(resources: Resources): Resources {
  const asksForSize = resources.cpus !== undefined || resources.memory !== undefined || resources.instanceType !== undefined;
  return asksForSize ? resources : { ...resources, cpus: smallMachine.cpus };
}
