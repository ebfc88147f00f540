import { defineCommand, type Command } from '../command.ts';
import { followLog, json, purge, tail, taskFile, taskOptions, waitGone, yes } from './common-options.ts';

const clusterName = { kind: 'one', label: 'CLUSTER', completes: 'cluster', summary: 'cluster' } as const;
const detach = { kind: 'flag', short: 'd', summary: 'do not follow the output of the job' } as const;

const status = defineCommand({
  path: ['status'],
  summary: 'Show clusters, the controller among them, and services',
  arguments: {
    names: { kind: 'many', label: 'CLUSTER', completes: 'cluster', summary: 'only these clusters; patterns such as test-* as well' },
  },
  options: {
    refresh: {
      kind: 'flag',
      short: 'r',
      summary: 'start the controller when it is stopped, so that it looks at all machines again',
    },
    json,
  },
  examples: ['svc status', 'svc status dev', 'svc status --json'],
  run: async (args, context) => (await import('../commands/status.ts')).status(args, context),
});

const launch = defineCommand({
  path: ['launch'],
  summary: 'Run a task on a new cluster, or on one that exists',
  description: 'Exits with 0 when the job succeeded, 100 when it failed and 103 when it was cancelled.',
  arguments: { file: taskFile },
  options: {
    cluster: { kind: 'value', short: 'c', label: 'NAME', completes: 'cluster', summary: 'name of the cluster; generated when absent' },
    ...taskOptions,
    detach,
    yes,
    json,
  },
  examples: ['svc launch task.yaml', 'svc launch task.yaml -c dev --env EPOCHS=3'],
  run: async (args, context) => (await import('../commands/jobs.ts')).launch(args, context),
});

const exec = defineCommand({
  path: ['exec'],
  summary: 'Run a task or a command on a cluster that exists',
  description: 'Setup is not run again. Exit codes are those of `svc launch`.',
  arguments: {
    cluster: clusterName,
    file: { ...taskFile, kind: 'optional' },
    command: { kind: 'afterDashes', label: '-- COMMAND', summary: 'command, instead of a file; a single word is a shell line' },
  },
  options: { ...taskOptions, detach, json },
  examples: ['svc exec dev task.yaml', 'svc exec dev -- python3 train.py --epochs 3', "svc exec dev -- 'ls | wc -l'"],
  run: async (args, context) => (await import('../commands/jobs.ts')).exec(args, context),
});

const logs = defineCommand({
  path: ['logs'],
  summary: 'Show the output of a job',
  description: 'When it follows the job to its end, the exit code is that of `svc launch`.',
  arguments: { cluster: clusterName, job: { kind: 'optional', label: 'JOB', summary: 'job; the newest when absent' } },
  options: { follow: followLog, tail },
  examples: ['svc logs dev', 'svc logs dev 2 --no-follow --tail 20'],
  run: async (args, context) => (await import('../commands/jobs.ts')).logs(args, context),
});

const down = defineCommand({
  path: ['down'],
  summary: 'Take clusters down',
  arguments: { names: { kind: 'many', label: 'CLUSTER', completes: 'cluster', summary: 'clusters; `*` and `?` match several' } },
  options: { all: { kind: 'flag', short: 'a', summary: 'all clusters' }, purge, wait: waitGone, yes, json },
  examples: ['svc down dev', 'svc down --all --yes'],
  destructive: true,
  run: async (args, context) => (await import('../commands/terminate.ts')).down(args, context),
});

/** `svc launch` and related commands: single machines for single tasks. */
export const clusterCommands: readonly Command[] = [status, launch, exec, logs, down];
