import { defaultConfig, type AwsConfig, type Config, type LocalConfig, type LocalSpotZone } from '../domain/config.ts';
import { SvcError } from '../shared/errors.ts';
import { findingsOf } from './findings.ts';
import { parsePartly } from './partial-parse.ts';
import { readKubernetes } from './read/kubernetes.ts';
import { readResources } from './read/resources.ts';
import { readTextFile } from './read-text-file.ts';
import { Report } from './report.ts';
import { configSection, type ConfigFields } from './schema/config.ts';
import { SourceText } from './source-text.ts';
import { composeYaml } from './yaml/compose.ts';
import { dropNulls } from './yaml/drop-nulls.ts';
import { nodeAt, toValue, type MapNode } from './yaml/node.ts';

/** 1 MiB. */
const maxConfigBytes = 1_048_576;

/** The configuration, or the defaults. Throws SVC_INVALID_CONFIG with all problems, or SVC_FILE_UNREADABLE. */
export async function loadConfig(path: string): Promise<Config> {
  try {
    const text = readTextFile(path, 'The configuration file', maxConfigBytes, (file) => {
      return new SvcError('SVC_INVALID_CONFIG', `${file} is larger than 1 MiB, which no configuration needs to be.`);
    });
    return parseConfig(text, path);
  } catch (error: unknown) {
    if (error instanceof SvcError && error.code === 'SVC_FILE_NOT_FOUND') return defaultConfig;
    throw error;
  }
}

const nullableSections = [
  [],
  ['serve'],
  ['serve', 'controller'],
  ['serve', 'controller', 'resources'],
  ['local'],
  ['aws'],
  ['kubernetes'],
  ['kubernetes', 'context_configs', '*'],
] as const;
const resourcesPath = ['serve', 'controller', 'resources'] as const;

/** Parses the text of a configuration file. An empty file, or one of comments only, gives the defaults. */
export function parseConfig(text: string, file: string): Config {
  if (text.split('\n').every((line) => /^\s*(#|$)/.test(line))) return defaultConfig;
  const source = new SourceText(text, file);
  const composed = composeYaml(source);
  const root = composed.root?.kind === 'map' ? dropNulls(composed.root, nullableSections) : undefined;
  // Excerpts show lines around a problem; they must never show a password.
  const report = new Report(source, root, () => passwordsIn(root));
  for (const fault of composed.faults) report.fault(fault);
  if (composed.root !== undefined && root === undefined) report.at([], 'expected a map of fields such as local and serve');
  let fields: ConfigFields = {};
  if (root !== undefined) {
    const { output, issues } = parsePartly(configSection, toValue(root));
    for (const finding of findingsOf(issues, { root, homes: new Map() })) {
      if (finding.key) report.atKey(finding.path, finding.message, finding.hint);
      else report.at(finding.path, finding.message, finding.hint);
    }
    fields = output ?? {};
  }
  const config = toConfig(fields, report);
  if (!report.isEmpty) throw report.toError('SVC_INVALID_CONFIG', 'The configuration file');
  return config;
}

/** The address of a database may contain a password. */
function passwordsIn(root: MapNode | undefined): readonly string[] {
  const node = root && nodeAt(root, ['serve', 'controller', 'database']);
  return node?.kind === 'scalar' && node.text !== '' ? [node.text] : [];
}

function toConfig(fields: ConfigFields, report: Report): Config {
  const controller = fields.serve?.controller ?? {};
  const defaults = defaultConfig.serve.controller;
  return {
    serve: {
      controller: {
        resources: controller.resources && readResources({ disk_size: controllerDiskGb, ...controller.resources }, resourcesPath, report),
        highAvailability: controller.high_availability ?? defaults.highAvailability,
        database: controller.database,
        image: controller.image?.replace(/^docker:(?:\/\/)?/, ''),
        balancers: controller.balancers ?? defaults.balancers,
        endpointService: controller.endpoint_service ?? defaults.endpointService,
        autostop: readAutostop(controller.autostop),
      },
    },
    local: readLocal(fields.local ?? {}, report),
    aws: readAws(fields.aws ?? {}),
    kubernetes: readKubernetes(fields.kubernetes ?? {}, report),
    allowedClouds: fields.allowed_clouds,
  };
}

/** GB: logs and copies of working directories of many services. */
const controllerDiskGb = 200;

type Controller = Config['serve']['controller'];

function readAutostop(given: NonNullable<NonNullable<ConfigFields['serve']>['controller']>['autostop']): Controller['autostop'] {
  const { autostop } = defaultConfig.serve.controller;
  if (given === false) return undefined;
  if (given === undefined || given === true) return autostop;
  if (typeof given === 'number') return { idleMinutes: given, down: false };
  return { idleMinutes: given.idle_minutes ?? autostop?.idleMinutes ?? 10, down: given.down ?? false };
}

function readAws(fields: NonNullable<ConfigFields['aws']>): AwsConfig {
  return {
    profile: fields.profile,
    regions: fields.regions,
    vpc: fields.vpc,
    useInternalIps: fields.use_internal_ips ?? defaultConfig.aws.useInternalIps,
    sshFrom: fields.ssh_from,
    controllerRole: fields.controller_role,
  };
}

function readLocal(fields: NonNullable<ConfigFields['local']>, report: Report): LocalConfig {
  const regions = fields.regions?.map((region) => {
    const { name, state, refuse_with: refuseWith, max_machines: maxMachines } = region;
    return { name, state, refuseWith, maxMachines } as const;
  });
  const seen = new Set<string>();
  for (const [index, { name }] of (regions ?? []).entries()) {
    if (seen.has(name)) report.at(['local', 'regions', index], 'two regions have this name');
    seen.add(name);
  }
  const [main = defaultConfig.local.regions[0]] = regions ?? defaultConfig.local.regions;
  const zones = (fields.spot_zones ?? []).map((zone): LocalSpotZone => {
    const { name, region = main?.name ?? '', room, hourly_price: hourlyUsd } = zone;
    const { reclaim_after_seconds: reclaimAfterSeconds, rebalance_seconds: rebalanceSeconds } = zone;
    return { name, region, room, hourlyUsd, reclaimAfterSeconds, rebalanceSeconds };
  });
  for (const [index, { name, region }] of zones.entries()) {
    if (zones.findIndex((one) => one.name === name) < index) report.at(['local', 'spot_zones', index], 'two zones have this name');
    if (!(regions ?? defaultConfig.local.regions).some((one) => one.name === region))
      report.at(['local', 'spot_zones', index, 'region'], 'is not the name of a region in local.regions');
  }
  return {
    regions: regions ?? defaultConfig.local.regions,
    spotZones: zones,
    hourlyUsd: fields.hourly_price ?? defaultConfig.local.hourlyUsd,
    isolation: fields.isolation ?? defaultConfig.local.isolation,
    maxProcesses: fields.max_processes,
    gpus: fields.gpus,
  };
}
