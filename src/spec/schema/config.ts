import { z } from 'zod';
import { defaultConfig, localIsolations } from '../../domain/config.ts';
import { isAddressRange } from '../../shared/address-range.ts';
import { readAccelerator } from './accelerators.ts';
import { cloudName } from './infra.ts';
import { kubernetesSection } from './kubernetes.ts';
import { defaulted, field, reading, required, seconds, section, someText, type Reading, wholeNumber, word } from './kit.ts';
import { autostop, resourcesSection } from './resources.ts';
import type { Accelerator } from '../../domain/task.ts';

const regionName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$/, 'is not the name of a region: letters, digits, ".", "_" and "-"');

const region = section({
  name: required(regionName, 'Name of the region.'),
  state: defaulted(word(['up', 'refusing', 'lost']), '`refusing` gives no new machines; `lost` also takes away those it has.', 'up'),
  refuse_with: defaulted(word(['capacity', 'quota']), 'What a refusal looks like.', 'capacity'),
  max_machines: field(wholeNumber.min(0), 'Machines it can have.', { words: 'as many as there is room for' }),
});

const spotZone = section({
  name: required(regionName, 'Name of the zone.'),
  region: field(regionName, 'Region of the zone.', { words: 'the first of `regions`' }),
  room: required(
    wholeNumber.min(0),
    'Spot machines that fit. When it falls below the number of machines, the zone reclaims the newest ones.',
  ),
  hourly_price: defaulted(z.number().min(0), 'Pretended price of a machine, US dollars per hour.', 0),
  reclaim_after_seconds: defaulted(seconds, 'Time from an interruption notice to the end of the machine; 0 ends it without a notice.', 120),
  rebalance_seconds: defaulted(
    seconds,
    'Time from a rebalance recommendation to the interruption notice, or to the end without one; 0 plays no recommendation.',
    0,
  ),
});

const gpuText = reading(z.string(), (text): Reading<Accelerator> => {
  const parsed = readAccelerator(text);
  if ('problem' in parsed) return parsed;
  return parsed.ok.kind === 'named'
    ? { ok: parsed.ok.accelerator }
    : { problem: 'must be NAME or NAME:COUNT\nWrite for instance: gpus: L4:2' };
});
const gpuCount = reading(wholeNumber.min(0).max(1024), (count): Reading<Accelerator> => ({ ok: { name: 'GPU', count } }));

const cloud = reading(someText, (text): Reading<string> => {
  const name = cloudName(text);
  return name === undefined || !/^[a-z0-9-]+$/.test(name) ? { problem: 'is not the name of a provider, region or zone' } : { ok: name };
});

const databaseUrl = z
  .string()
  .regex(/^postgres(?:ql)?:\/\/[^\s]+$/, 'is not the address of a PostgreSQL database: postgres://USER:PASSWORD@HOST:PORT/NAME');

const serviceTypes = ['ClusterIP', 'NodePort', 'LoadBalancer'] as const;
const serviceType = z
  .preprocess(
    (given) => serviceTypes.find((type) => typeof given === 'string' && type.toLowerCase() === given.toLowerCase()) ?? given,
    z.enum(serviceTypes),
  )
  .meta({ anyCase: true });

const { controller: ofController } = defaultConfig.serve;

const controller = section({
  resources: field(resourcesSection, 'The machine of the controller, as `resources` in a task file.', { words: 'this machine' }),
  high_availability: field(
    z.boolean(),
    'Run the controller so that it survives the loss of its machine (Kubernetes only).',
    ofController.highAvailability,
  ),
  database: field(
    databaseUrl,
    'Where several controllers keep their state together: `postgres://USER:PASSWORD@HOST:PORT/NAME`. `SVC_DATABASE` goes before it.',
    { words: 'a file of the controller' },
  ),
  image: field(someText, 'With `high_availability`: image of the controller, made from the `Dockerfile`.'),
  balancers: field(wholeNumber.min(1).max(16), 'With `high_availability`: how many balancers serve each endpoint.', ofController.balancers),
  endpoint_service: field(
    serviceType,
    'With `high_availability`: type of the Service that leads to the endpoints.',
    ofController.endpointService,
  ),
  autostop: field(
    autostop,
    'Minutes after the last service until the controller stops: `true`, `false`, minutes, text such as `1h`, or `{idle_minutes, down}`.',
    ofController.autostop?.idleMinutes,
  ),
});

const local = section({
  regions: field(
    z
      .array(z.union([regionName, region]).transform((given) => (typeof given === 'string' ? region.parse({ name: given }) : given)))
      .min(1)
      .max(100),
    'Regions this machine pretends to have, by name or in detail.',
    defaultConfig.local.regions.map(({ name }) => name),
  ),
  isolation: field(word(localIsolations), 'How replicas are kept apart; `auto` takes the first that works.', defaultConfig.local.isolation),
  max_processes: field(z.int().min(50).max(4_194_304), 'Limit of the processes and threads of one replica, 50 or more.', {
    words: "a quarter of the system's process ids, at most 16384",
  }),
  gpus: field(z.union([gpuCount, gpuText]), 'GPUs to offer instead of those found: a number, or `NAME:COUNT`.', { words: 'those found' }),
  spot_zones: field(
    z.array(spotZone).max(100),
    'Zones that play spot machines on this machine, to try spot policies. Read again at each poll.',
    [],
  ),
  hourly_price: field(z.number().min(0), 'Pretended price of its other machines, US dollars per hour.', 0),
});

const addressRange = z.string().refine(isAddressRange, 'is neither an address nor a range such as 203.0.113.0/24');

const aws = section({
  profile: field(someText, 'Profile of `~/.aws/config`.', { words: '`AWS_PROFILE`, else the default one' }),
  regions: field(z.array(regionName).min(1), 'The only regions to use.', { words: 'all' }),
  vpc: field(someText, 'Name or id of the VPC to use.', { words: 'the default one' }),
  use_internal_ips: field(
    z.boolean(),
    'Give machines no public address, and reach them at their private ones.',
    defaultConfig.aws.useInternalIps,
  ),
  ssh_from: field(z.array(addressRange).min(1), 'Addresses or ranges from which this machine connects over SSH.', {
    words: 'its address as AWS sees it',
  }),
  controller_role: field(someText, 'Instance profile for a controller on AWS.', { words: 'one is made' }),
});

/** The configuration file. */
export const configSection = section({
  serve: field(section({ controller: field(controller, 'The controller. Settings apply to the next one that starts.') }), 'Serving.'),
  local: field(local, 'This machine as a provider for replicas.'),
  aws: field(aws, 'Amazon Web Services as a provider for replicas.'),
  kubernetes: field(kubernetesSection, 'Kubernetes clusters as providers for replicas.'),
  allowed_clouds: field(z.array(cloud).min(1), 'The only providers that may be used.', { words: 'all' }),
});

export type ConfigFields = z.output<typeof configSection>;
