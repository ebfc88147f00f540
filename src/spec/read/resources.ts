import type { ResourceAlternatives, Resources } from '../../domain/task.ts';
import type { Report } from '../report.ts';
import type { AcceleratorChoice, AcceleratorWish } from '../schema/accelerators.ts';
import { cloudName, wild, type InfraChoice } from '../schema/infra.ts';
import type { MachineFields, ResourcesFields } from '../schema/resources.ts';
import type { Path } from '../yaml/node.ts';

/** Alternatives beyond this are a mistake: each one is looked up in every place. */
const maxChoices = 1000;

/** GB; what a machine gets when nothing is said. */
const defaultDiskGb = 256;

/** Fields that are accepted and acted upon elsewhere, or not at all: kept by name, so that deploying can refuse them. */
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

/**
 * The section `resources` as a list of alternatives, each complete. Rules over several of its fields are reported below `path`.
 * Also called for a section of which refused parts have been taken away.
 */
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
      if ((choice?.wishes.length ?? 0) > 1) {
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

/** Rules within one block; gives back its accelerators under whichever name. */
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
  const base = toResources(merged, { ...placeOf(outer), ...placeOf(inner) }, { ...outer.labels, ...inner.labels });
  if (choice === undefined) return [base];
  return choice.wishes.map((wish) => withAccelerator(base, wish));
}

/** Only the parts that are given, so that an entry's region refines the cloud outside, and its `infra` replaces all. */
function placeOf(fields: MachineFields): Partial<InfraChoice> {
  if (fields.infra !== undefined) return fields.infra;
  return {
    ...(fields.cloud === undefined ? {} : { cloud: cloudName(fields.cloud) }),
    ...(fields.region === undefined ? {} : { region: wild(fields.region) }),
    ...(fields.zone === undefined ? {} : { zone: wild(fields.zone) }),
  };
}

function toResources(fields: MachineFields, place: Partial<InfraChoice>, labels: Readonly<Record<string, string>>): Resources {
  return {
    cloud: place.cloud,
    region: place.region,
    zone: place.zone,
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

/** Memory for each CPU counts from the CPUs asked for; without them, from one. */
function memoryOf({ memory, cpus }: MachineFields): Resources['memory'] {
  if (memory === undefined) return undefined;
  if (!memory.perCpu) return { value: memory.value, atLeast: memory.atLeast };
  return { value: memory.value * (cpus?.value ?? 1), atLeast: true };
}

function withAccelerator(base: Resources, wish: AcceleratorWish): Resources {
  return wish.kind === 'named' ? { ...base, accelerator: wish.accelerator } : { ...base, acceleratorMemory: wish.memory };
}
