import { z } from 'zod';
import { accelerators } from './accelerators.ts';
import { infra, infraPart } from './infra.ts';
import { type Reading, anyMap, field, reading, section, someText, wholeNumber, word } from './kit.ts';
import { bytesPerGb, parseDuration, parseSize } from '../../shared/units.ts';
import type { Amount } from '../../domain/task.ts';

const cpuHelp = 'must be a number greater than 0, or such a number with + for "at least"\nWrite for instance: cpus: 4 or cpus: 4+';

/** `4`, `"4"`, `4+`, `4.5`: virtual CPUs. */
export const cpuAmount = reading(z.union([z.number(), z.string()]), (value): Reading<Amount> => {
  const match = /^(\d{1,9}(?:\.\d{1,6})?)(\+?)$/.exec(String(value).trim());
  const amount = Number(match?.[1]);
  return match !== null && amount > 0 ? { ok: { value: amount, atLeast: match[2] === '+' } } : { problem: cpuHelp };
});

/** Memory in GB, or in GB per CPU (`2x`). */
type MemoryAmount = Amount & { readonly perCpu: boolean };

const memoryHelp =
  'must be a size greater than 0, or such a size with + for "at least"\nWrite for instance: memory: 16, memory: 16+ or memory: 512MB';

const binaryUnit = 'the unit is not known\nWrite GB instead of GiB; a GB counts 1024 MB here.';

/** `16`, `16+`, `16GB`, `1tb`, `2x`. */
export const memoryAmount = reading(z.union([z.number(), z.string()]), (value): Reading<MemoryAmount> => {
  const text = String(value).trim();
  const atLeast = text.endsWith('+');
  const perCpu = /\dx$/.test(text);
  const bytes = parseSize(atLeast || perCpu ? text.slice(0, -1) : text, 'GB');
  if (bytes === undefined || bytes <= 0) return { problem: /\d ?[kmgtp]ib?\+?$/i.test(text) ? binaryUnit : memoryHelp };
  return { ok: { value: bytes / bytesPerGb, atLeast, perCpu } };
});

const diskHelp = 'must be a size greater than 0\nWrite GB, or for instance 100GB or 1TB.';

/** `256`, `"256"`, `256GB`, `1TB`: whole GB. */
const diskSize = reading(z.union([z.number(), z.string()]), (value): Reading<number> => {
  const bytes = parseSize(String(value), 'GB');
  return bytes === undefined || bytes <= 0 ? { problem: diskHelp } : { ok: Math.ceil(bytes / bytesPerGb) };
});

const form = 'must be a port, or a range FROM-TO with FROM not greater than TO\nWrite for instance: ports: 8080 or ports: 8000-8010';
const outside = 'ports are numbers from 1 to 65535';

interface PortRange {
  readonly from: number;
  readonly to: number;
}

function readPorts(value: string | number): Reading<PortRange> {
  const match = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(String(value).replaceAll(' ', ''));
  if (match === null) return { problem: typeof value === 'number' ? outside : form };
  const from = Number(match[1]);
  const to = Number(match[2] ?? match[1]);
  if (from > to) return { problem: form };
  return from < 1 || to > 65_535 ? { problem: outside } : { ok: { from, to } };
}

const one = reading(z.union([z.number(), z.string()]), readPorts);

/** `8080`, `"8080"`, `8000-8010`, or a list of these: every port, ascending, each once. */
const ports = reading(z.union([one, z.array(one).max(100)]), (given): Reading<readonly number[]> => {
  const found: number[] = [];
  for (const { from, to } of [given].flat().toSorted((a, b) => a.from - b.from)) {
    for (let port = Math.max(from, (found.at(-1) ?? 0) + 1); port <= to; port += 1) found.push(port);
  }
  return { ok: found };
});

const autostopText = reading(z.string(), (text): Reading<number> => {
  const parsed = parseDuration(text, 'm');
  return parsed === undefined ? { problem: 'is not a duration\nWrite minutes, or for instance 10m or 1h.' } : { ok: parsed / 60 };
});

/** When an idle machine stops: on or off, minutes, or a map of details. */
export const autostop = z.union([
  z.boolean(),
  wholeNumber.min(0),
  autostopText,
  section({
    idle_minutes: field(wholeNumber.min(0), 'Minutes without work.'),
    down: field(z.boolean(), 'Whether the machine is removed rather than stopped.', false),
    wait_for: field(word(['jobs_and_ssh', 'jobs', 'none']), 'What counts as work.'),
    hook: field(z.string(), 'Command to run before.'),
    hook_timeout: field(wholeNumber.min(1), 'Seconds the hook may take.'),
  }),
]);

/** Requirements for one machine: the fields of `resources`, and of each entry of `any_of` and `ordered`. */
const machine = {
  infra: field(infra, 'Where: `CLOUD[/REGION[/ZONE]]`, with `*` for any; `k8s/CONTEXT`, `ssh/POOL`. Case of the cloud does not count.', {
    words: 'anywhere',
  }),
  cloud: field(infraPart, 'Older form of `infra`: the cloud.'),
  region: field(infraPart, 'Older form of `infra`: the region.'),
  zone: field(infraPart, 'Older form of `infra`: the zone.'),
  accelerators: field(
    accelerators,
    'GPUs or TPUs: `L4`, `L4:2`, `{L4: 2}`; a map of several means any of them, a list is an order of preference; `80GB+` is any with that much memory. Inside `any_of` and `ordered` only one.',
  ),
  gpus: field(accelerators, 'The same as `accelerators`; only one of the two may be given.'),
  cpus: field(cpuAmount, 'Virtual CPUs, more than 0: `4` exactly, `4+` at least.'),
  memory: field(memoryAmount, 'GB, or a size such as `512MB`, more than 0; `16+` is at least, `2x` is that many GB for each CPU.'),
  instance_type: field(someText, "A machine type by the provider's own name."),
  use_spot: field(z.boolean(), 'Use machines that the provider may reclaim, at a lower price. Alternatives may differ in it.', false),
  disk_size: field(diskSize, 'GB, or a size such as `1TB`, more than 0.', 256),
  disk_tier: field(word(['low', 'medium', 'high', 'ultra', 'best']), 'Speed of the disk.'),
  network_tier: field(word(['standard', 'best']), 'Speed of the network.'),
  ports: field(ports, 'Ports the machine opens: `8080`, `"8000-8010"`, or a list of these, from 1 to 65535.'),
  image_id: field(
    z.union([someText, z.record(z.string(), z.string())]),
    'The image of the machine, `docker:IMAGE` for a container, or a map from region to image.',
  ),
  labels: field(z.record(z.string().min(1), z.string()), 'Labels put on the machine; values are text.'),
  max_hourly_cost: field(z.number().gt(0), 'US dollars an hour that one machine may cost at most.'),
  autostop: field(autostop, 'Stop the machine when idle. Not for services.'),
  job_recovery: field(z.union([someText, anyMap]), 'How jobs are recovered. Refused for services, which replace their replicas anyway.'),
  priority: field(wholeNumber.min(-1000).max(1000), 'Priority among jobs, from -1000 to 1000.'),
  priority_class: field(someText, 'Priority among jobs, by name.'),
  local_disk: field(someText, 'Fast disk inside the machine.'),
  ephemeral_storage: field(diskSize, 'GB of storage that ends with the machine.'),
  accelerator_args: field(anyMap, 'Details of accelerators, such as the TPU software version.'),
  volumes: field(z.array(z.unknown()), 'Disks to attach.'),
};

/** One entry of `any_of` or `ordered`. */
export const machineSection = section(machine);

// More would be a mistake, and each alternative costs planning time.
const alternatives = z.array(machineSection).min(1).max(100);

/** The section `resources`. */
export const resourcesSection = section({
  ...machine,
  any_of: field(alternatives, 'Alternatives, the cheapest wins. Fields outside are defaults; labels add up. Not together with `ordered`.'),
  ordered: field(alternatives, 'Alternatives in order of preference. Fields outside are defaults; labels add up.'),
});

export type MachineFields = z.output<typeof machineSection>;
export type ResourcesFields = z.output<typeof resourcesSection>;
