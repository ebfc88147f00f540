import type { ResourceAlternatives, Resources } from '../../domain/task.ts';
import type { Report } from '../report.ts';
import type { AcceleratorChoice, AcceleratorAlternative } from '../schema/accelerators.ts';
import { cloudName, wild, type InfraChoice } from '../schema/infra.ts';
import type { MachineFields, ResourcesFields } from '../schema/resources.ts';
import type { Path } from '../yaml/node.ts';

/** More alternatives are a mistake: svc searches for each one at every provider. */
const maxChoices = 1000;

/** GB; default disk of a machine. */
const defaultDiskGb = 256;

/** Accepted fields that another module handles, or that are ignored. A deploy can refuse them by name. */
const otherFields = [
  'autostop',
  'job_recovery',
  'priority',
  'priority_class',
  'local_disk',
  'ephemeral_storage',
  'accelerator_args',
  'volumes',
] as const;

/** Reads `resources` as complete alternatives, also without refused parts. Reports rules broken below `path`. */
export function readResources(fields: ResourcesFields, path: Path, report: Report): ResourceAlternatives {
  const { any_of: anyOf, ordered, ...outer } = fields;
  const accelerators = checkMachine(outer, path, report);
  if (anyOf !== undefined && ordered !== undefined) {
    report.atKey([...path, 'ordered'], 'any_of and ordered cannot both be given', 'Keep one of the two.');
  }
  if (anyOf !== undefined && accelerators?.order === 'ordered') {
    const message = 'a list of accelerators is an order of preference, which any_of does not keep';
    report.at([...path, 'accelerators'], message, 'Use ordered instead of any_of, or a map of accelerators.');
  }
  const listName = ordered === undefined ? 'any_of' : 'ordered';
  const entries = ordered ?? anyOf;
  if (entries !== undefined) {
    for (const [index, entry] of entries.entries()) {
      const choice = checkMachine(entry, [...path, listName, index], report);
      if ((choice?.alternatives.length ?? 0) > 1) {
        report.at(
          [...path, listName, index, 'accelerators'],
          `only one accelerator can stand in an entry of ${listName}`,
          'Make one entry for each.',
        );
      }
    }
  }
  const choices = (entries ?? [{}]).flatMap((entry) => expand(outer, entry));
  if (choices.length > maxChoices) report.at(path, `there are ${choices.length} alternatives; at most ${maxChoices} are allowed`);
  const order = ordered === undefined ? (entries === undefined ? (accelerators?.order ?? 'any') : 'any') : 'ordered';
  return { order, choices };
}

/** Checks the rules within one block. Returns its accelerators, whichever field gives them. */
function checkMachine(fields: MachineFields, path: Path, report: Report): AcceleratorChoice | undefined {
  const older = (['cloud', 'region', 'zone'] as const).filter((name) => fields[name] !== undefined);
  if (fields.infra !== undefined && older.length > 0) {
    report.at([...path, 'infra'], `infra and ${older.join(', ')} cannot both be given`, 'Write all of it as infra: CLOUD/REGION/ZONE.');
  }
  if (fields.accelerators !== undefined && fields.gpus !== undefined) {
    report.atKey([...path, 'gpus'], 'accelerators and gpus cannot both be given', 'They are two names of one field; keep one.');
  }
  return fields.accelerators ?? fields.gpus;
}

function expand(outer: MachineFields, inner: MachineFields): readonly Resources[] {
  const merged: MachineFields = { ...outer, ...inner };
  const choice = inner.accelerators ?? inner.gpus ?? outer.accelerators ?? outer.gpus;
  const base = toResources(merged, { ...locationOf(outer), ...locationOf(inner) }, { ...outer.labels, ...inner.labels });
  if (choice === undefined) return [base];
  return choice.alternatives.map((alternative) => withAccelerator(base, alternative));
}

/** Only the given parts: an entry's region refines the outer cloud, and its `infra` replaces all of it. */
function locationOf(fields: MachineFields): Partial<InfraChoice> {
  if (fields.infra !== undefined) return fields.infra;
  return {
    ...(fields.cloud === undefined ? {} : { cloud: cloudName(fields.cloud) }),
    ...(fields.region === undefined ? {} : { region: wild(fields.region) }),
    ...(fields.zone === undefined ? {} : { zone: wild(fields.zone) }),
  };
}

function toResources(fields: MachineFields, location: Partial<InfraChoice>, labels: Readonly<Record<string, string>>): Resources {
  return {
    cloud: location.cloud,
    region: location.region,
    zone: location.zone,
    cpus: fields.cpus,
    memory: memoryOf(fields),
    accelerator: undefined,
    acceleratorMemory: undefined,
    instanceType: fields.instance_type,
    useSpot: fields.use_spot ?? false,
    diskSizeGb: fields.disk_size ?? defaultDiskGb,
    diskTier: fields.disk_tier,
    networkTier: fields.network_tier,
    ports: fields.ports ?? [],
    imageId: fields.image_id,
    labels,
    maxHourlyCost: fields.max_hourly_cost,
    otherFields: otherFields.filter((name) => fields[name] !== undefined && fields[name] !== false),
  };
}

/** Memory per CPU is multiplied by the requested CPUs; without a request, by one. */
function memoryOf({ memory, cpus }: MachineFields): Resources['memory'] {
  if (memory === undefined) return undefined;
  if (!memory.perCpu) return { value: memory.value, atLeast: memory.atLeast };
  return { value: memory.value * (cpus?.value ?? 1), atLeast: true };
}

function withAccelerator(base: Resources, alternative: AcceleratorAlternative): Resources {
  return alternative.kind === 'named'
    ? { ...base, accelerator: alternative.accelerator }
    : { ...base, acceleratorMemory: alternative.memory };
}
