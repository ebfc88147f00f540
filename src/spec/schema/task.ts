import { z } from 'zod';
import { objectName, taskConfigSection } from './kubernetes.ts';
import { anyMap, anything, field, reading, section, someText, wholeNumber, type Reading } from './kit.ts';
import { fileMountsSection, workdirSection } from './mounts.ts';
import { resourcesSection } from './resources.ts';
import { poolSection, serviceSection } from './service.ts';

/** Names of environment variables. */
export const variableName = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

const name = z.string().regex(variableName, "is not the name of a variable: letters, digits and '_', not beginning with a digit");
const value = z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.unknown()), anyMap]);
const variables = z.record(name, value);
const managedSecrets = z.array(z.string().regex(/^secrets:\S+$/, 'must be secrets:NAME'));

/** A volume by its name. SkyPilot can also create one for the duration of a task, described by a map. */
const volume = z.union([
  objectName,
  reading(anyMap, (map): Reading<string> => {
    const { name: named, ...rest } = map;
    if (typeof named === 'string' && Object.keys(rest).length === 0) return { ok: named };
    return { problem: 'must be the name of a volume that exists\nMake it first: a PersistentVolumeClaim in the namespace of the pods.' };
  }),
]);

/** A task or service file. */
export const taskSection = section({
  name: field(someText, 'Name of the task, for people.'),
  workdir: field(
    workdirSection,
    'Folder that is copied to the machine and in which `setup` and `run` are run: a path relative to the file, or a git repository.',
  ),
  num_nodes: field(wholeNumber.min(1).max(10_000), 'Machines for one replica or job.', 1),
  resources: field(resourcesSection, 'What each machine must have.'),
  envs: field(
    variables,
    'Environment variables. A value that is left empty must be given with `--env` or `--env-file`. `$NAME` is put in below `service`, `file_mounts`, `workdir` and `volumes`.',
  ),
  secrets: field(
    z.union([variables, managedSecrets]),
    'As `envs`, but the values are never shown or logged; given with `--secret` or `--secret-file`.',
  ),
  file_mounts: field(
    fileMountsSection,
    'Files and folders put on the machine: path there, and local path (relative to the file) or bucket.',
  ),
  setup: field(z.string(), 'Shell commands that prepare the machine, run once.'),
  run: field(z.string(), 'Shell commands of the program.'),
  service: field(serviceSection, 'How the program is served. Without it the file is a task that runs once.'),
  pool: field(poolSection, 'A pool of workers for jobs. Not together with `service`.'),
  managed_secrets: field(anything, 'Secrets kept elsewhere.'),
  config: field(taskConfigSection, 'Settings for this task alone, which go before those of the configuration.'),
  volumes: field(
    z.record(z.string(), volume),
    'Volumes by the folder where they are to be. On Kubernetes: names of PersistentVolumeClaims of the namespace.',
  ),
  volume_mounts: field(anything, 'Older form of `volumes`.'),
  inputs: field(anyMap, 'Where input comes from, and its size in GB.'),
  outputs: field(anyMap, 'Where output goes, and its size in GB.'),
  event_callback: field(z.string(), 'Command that is run when the state changes.'),
  file_mounts_mapping: field(anything, 'Written by tools.'),
  api_server_access: field(anything, 'Whether the machine may call the control API.'),
  _metadata: field(anything, 'Written by tools.'),
});

export type TaskFields = z.output<typeof taskSection>;
