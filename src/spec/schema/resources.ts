import { z } from 'zod';
import { accelerators } from './accelerators.ts';
import { cpuAmount, diskSize, memoryAmount } from './amounts.ts';
import { infra, placePart } from './infra.ts';
import { anyMap, field, reading, section, someText, type Reading, word, wholeNumber } from './kit.ts';
import { ports } from './ports.ts';
import { parseDuration } from '../../shared/units.ts';

const autostopText = reading(z.string(), (text): Reading<number> => {
  const parsed = parseDuration(text, 'm');
  return parsed === undefined ? { problem: 'is not a duration\nWrite minutes, or for instance 10m or 1h.' } : { ok: parsed / 60 };
});

/** When an idle machine stops: on or off, minutes, or in detail. */
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

/** What one machine must have; the fields of `resources` and of each entry of `any_of` and `ordered`. */
const machine = {
  infra: field(infra, 'Where: `CLOUD[/REGION[/ZONE]]`, with `*` for any; `k8s/CONTEXT`, `ssh/POOL`. Case of the cloud does not count.', {
    words: 'anywhere',
  }),
  cloud: field(placePart, 'Older form of `infra`: the cloud.'),
  region: field(placePart, 'Older form of `infra`: the region.'),
  zone: field(placePart, 'Older form of `infra`: the zone.'),
  accelerators: field(
    accelerators,
    'GPUs or TPUs: `L4`, `L4:2`, `{L4: 2}`; a map of several means any of them, a list is an order of preference; `80GB+` is any with that much memory. Inside `any_of` and `ordered` only one.',
  ),
  gpus: field(accelerators, 'The same as `accelerators`; only one of the two may be given.'),
  cpus: field(cpuAmount, 'Virtual CPUs, more than 0: `4` exactly, `4+` at least.'),
  memory: field(memoryAmount, 'GB, or a size such as `512MB`, more than 0; `16+` is at least, `2x` is that many GB for each CPU.'),
  instance_type: field(someText, "A machine type by the place's own name."),
  use_spot: field(
    z.boolean(),
    'Use machines that the place may take back, at a lower price. All alternatives of a service, or none.',
    false,
  ),
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

// More would be a mistake, and each of them is planned for.
const alternatives = z.array(machineSection).min(1).max(100);

/** The section `resources`. */
export const resourcesSection = section({
  ...machine,
  any_of: field(alternatives, 'Alternatives, the cheapest wins. Fields outside are defaults; labels add up. Not together with `ordered`.'),
  ordered: field(alternatives, 'Alternatives in order of preference. Fields outside are defaults; labels add up.'),
});

export type MachineFields = z.output<typeof machineSection>;
export type ResourcesFields = z.output<typeof resourcesSection>;
