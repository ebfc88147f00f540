import { defineCommand, type Command } from '../command.ts';
import { followLog, json, purge, tail, taskFile, taskOptions, waitGone, yes } from './common-options.ts';

const serviceName = { kind: 'one', label: 'NAME', completes: 'service', summary: 'service' } as const;
const serviceNames = { kind: 'many', label: 'NAME', completes: 'service', summary: 'services; `*` and `?` match several' } as const;

const up = defineCommand({
  path: ['serve', 'up'],
  summary: 'Put a service up',
  description:
    'On a terminal it follows until the first replica is ready; Ctrl-C leaves the service running. ' +
    'Elsewhere it prints the endpoint alone as its result, with what to do next on standard error, and returns at once.',
  arguments: { file: { ...taskFile, summary: 'service file (YAML)' } },
  options: {
    name: { kind: 'value', short: 'n', alias: 'service-name', label: 'NAME', summary: 'name of the service; generated when absent' },
    ...taskOptions,
    expose: { kind: 'flag', summary: 'let the endpoint listen on all addresses, not on this machine alone' },
    endpointPort: { kind: 'integer', label: 'PORT', min: 1, max: 65_535, summary: 'port of the endpoint; a free one when absent' },
    wait: {
      kind: 'switch',
      summary: 'follow until the first replica is ready (default on a terminal)',
      offSummary: 'print the endpoint and return at once',
    },
    yes,
    json,
  },
  examples: [
    'svc serve up service.yaml',
    'svc serve up service.yaml -n chat --env MODEL=small',
    'svc serve up service.yaml --secret HF_TOKEN --wait',
  ],
  run: async (args, context) => (await import('../commands/serve-up.ts')).serveUp(args, context),
});

const waitUpdated = {
  kind: 'switch',
  summary: 'follow until all replicas have the new version (default on a terminal)',
  offSummary: 'return at once',
} as const;

const update = defineCommand({
  path: ['serve', 'update'],
  summary: 'Change a running service to a new version of its file',
  description:
    'Shows the difference and asks. Replicas are replaced one after the other: a new one is ready before an old one is drained. ' +
    'With --mode blue_green, all requests move at once when every new replica is ready. ' +
    'With --mode canary, requests move in steps, the versions are compared, and a worse one is rolled back. ' +
    'They stay when only the service section changes. A version of which no replica becomes ready stops the update, and the version before serves on.',
  arguments: { name: serviceName, file: { ...taskFile, summary: 'service file (YAML)' } },
  options: {
    ...taskOptions,
    mode: { kind: 'value', label: 'MODE', summary: 'rolling, blue_green or canary; rolling when the file says nothing' },
    steps: {
      kind: 'value',
      label: 'P,P,…',
      summary: 'shares of the requests that a canary gets, in percent; 5,25,50 when the file says nothing',
    },
    bake: {
      kind: 'value',
      label: 'TIME',
      summary: 'how long each step of a canary lasts, and old replicas stay after blue_green switched; 300 when the file says nothing',
    },
    surge: { kind: 'value', label: 'N|P%', summary: 'replicas beyond the desired number meanwhile; 1 when the file says nothing' },
    maxUnavailable: {
      kind: 'integer',
      label: 'N',
      min: 0,
      max: 10_000,
      summary: 'how many fewer may be ready meanwhile; for where there is no machine for one more',
    },
    wait: waitUpdated,
    yes,
    json,
  },
  examples: [
    'svc serve update chat service.yaml',
    'svc serve update chat service.yaml --env MODEL=large --surge 50%',
    'svc serve update chat service.yaml --surge 0 --max-unavailable 1',
    'svc serve update chat service.yaml --mode canary --steps 5,25,50 --bake 10m',
  ],
  destructive: true,
  run: async (args, context) => (await import('../commands/serve-update.ts')).serveUpdate(args, context),
});

const rollback = defineCommand({
  path: ['serve', 'rollback'],
  summary: 'Go back to an earlier version of a service',
  description: 'The earlier version, with the files that it had, becomes the newest one. Replicas that still run it are kept.',
  arguments: { name: serviceName },
  options: {
    to: { kind: 'integer', label: 'VERSION', min: 1, max: Number.MAX_SAFE_INTEGER, summary: 'the last one that worked before when absent' },
    wait: waitUpdated,
    yes,
    json,
  },
  examples: ['svc serve rollback chat', 'svc serve rollback chat --to 3 --yes'],
  destructive: true,
  run: async (args, context) => (await import('../commands/serve-update.ts')).serveRollback(args, context),
});

const pause = defineCommand({
  path: ['serve', 'pause'],
  summary: 'Hold the update of a service where it is',
  description:
    'No further replica is replaced and no further request moves. Lost replicas are replaced, and a worse canary is still rolled back.',
  arguments: { name: serviceName },
  options: { json },
  examples: ['svc serve pause chat'],
  run: async (args, context) => (await import('../commands/serve-update.ts')).servePause(args, context, true),
});

const resume = defineCommand({
  path: ['serve', 'resume'],
  summary: 'Let a held update go on',
  arguments: { name: serviceName },
  options: { json },
  examples: ['svc serve resume chat'],
  run: async (args, context) => (await import('../commands/serve-update.ts')).servePause(args, context, false),
});

const versions = defineCommand({
  path: ['serve', 'versions'],
  summary: 'Show the versions of a service, and what each one changed',
  arguments: { name: serviceName },
  options: { json },
  examples: ['svc serve versions chat'],
  run: async (args, context) => (await import('../commands/serve-update.ts')).serveVersions(args, context),
});

const plan = defineCommand({
  path: ['serve', 'plan'],
  summary: 'Show the locations that a service would get, their costs, and the reasons',
  description:
    'Starts nothing and requests no machine. `svc serve up` finds out whether a location has a machine, and if not, tries the next best one. ' +
    'A month is 730 hours.',
  arguments: { file: { ...taskFile, summary: 'service file (YAML)' } },
  options: {
    ...taskOptions,
    all: { kind: 'flag', short: 'a', summary: 'every machine that there is, with the reason for or against it' },
    json,
  },
  examples: ['svc serve plan service.yaml', 'svc serve plan service.yaml --all'],
  run: async (args, context) => (await import('../commands/serve-plan.ts')).servePlan(args, context),
});

const explain = defineCommand({
  path: ['serve', 'explain'],
  summary: 'Show how the machines of a service were found, and which offers exist now',
  description:
    'For each replica: the locations that were asked, their answers, the time waited, and the location that created the machine.',
  arguments: { name: serviceName, id: { kind: 'optional', label: 'ID', summary: 'replica; all when absent' } },
  options: { all: { kind: 'flag', short: 'a', summary: 'all offers that exist now, not only the best' }, json },
  examples: ['svc serve explain chat', 'svc serve explain chat 2'],
  run: async (args, context) => (await import('../commands/one-service.ts')).serveExplain(args, context),
});

const status = defineCommand({
  path: ['serve', 'status'],
  summary: 'Show services and their replicas',
  arguments: { names: serviceNames },
  options: {
    endpoint: { kind: 'optionalValue', label: 'NAME', completes: 'service', summary: 'print nothing but the endpoint of one service' },
    watch: { kind: 'flag', summary: 'show it again whenever it changes, until Ctrl-C' },
    verbose: { kind: 'flag', short: 'v', summary: 'show policies, requested resources, all replicas and whole reasons' },
    json,
  },
  examples: ['svc serve status', 'svc serve status chat --watch', 'curl $(svc serve status --endpoint chat)'],
  run: async (args, context) => (await import('../commands/status.ts')).serveStatus(args, context),
});

const logs = defineCommand({
  path: ['serve', 'logs'],
  summary: 'Show the log of a replica, the controller or the load balancer',
  description:
    "A replica's log holds provisioning, setup and run, in this order, and stays after the replica is gone, until the service is taken down. " +
    'With --load-balancer each line is a request or a refused connection: its status, the time until the first byte of the response came (FIRST) and until it ended ' +
    '(TOTAL), the replica and where it runs, why it was chosen and how many requests it had at that moment, and what was unusual. ' +
    "Headers and queries are never logged, and clients' addresses only with load_balancer.access_log_addresses.",
  arguments: { name: serviceName, id: { kind: 'optional', label: 'ID', summary: 'replica; the newest when absent' } },
  options: {
    controller: { kind: 'flag', summary: 'the log of the process that looks after the replicas' },
    loadBalancer: { kind: 'flag', summary: 'requests at the endpoint, and what the process that serves them says' },
    follow: followLog,
    tail,
    json: {
      kind: 'flag',
      summary: 'with --load-balancer the requests, with --controller the lines, as they are logged: a JSON object each',
    },
  },
  examples: ['svc serve logs chat 1', 'svc serve logs chat 2 --no-follow --tail 50', 'svc serve logs chat --load-balancer'],
  run: async (args, context) => (await import('../commands/one-service.ts')).serveLogs(args, context),
});

const metrics = defineCommand({
  path: ['serve', 'metrics'],
  summary: 'Show what the endpoint of a service counts, in the text format of Prometheus',
  description:
    'Prometheus itself can collect them at 127.0.0.1 when the service file sets load_balancer.metrics_port. What each one means: ' +
    'docs/reference/metrics.md',
  arguments: { name: serviceName },
  options: {},
  examples: ['svc serve metrics chat', 'svc serve metrics chat | grep requests_total'],
  run: async (args, context) => (await import('../commands/one-service.ts')).serveMetrics(args, context),
});

const down = defineCommand({
  path: ['serve', 'down'],
  summary: 'Take services down, with everything they run on',
  arguments: { names: serviceNames },
  options: { all: { kind: 'flag', short: 'a', summary: 'all services' }, purge, wait: waitGone, yes, json },
  examples: ['svc serve down chat', "svc serve down 'test-*' --yes", 'svc serve down --all --yes'],
  destructive: true,
  run: async (args, context) => (await import('../commands/terminate.ts')).serveDown(args, context),
});

const events = defineCommand({
  path: ['serve', 'events'],
  summary: 'Show the history of a service: every change of state, and why',
  arguments: { name: serviceName },
  options: {
    follow: { kind: 'flag', short: 'f', summary: 'go on with what happens, until Ctrl-C' },
    json: { kind: 'flag', summary: 'print one JSON object a line' },
  },
  examples: ['svc serve events chat', 'svc serve events chat --follow --json'],
  run: async (args, context) => (await import('../commands/one-service.ts')).serveEvents(args, context),
});

const terminateReplica = defineCommand({
  path: ['serve', 'terminate-replica'],
  summary: 'End one replica; a new one takes its place',
  arguments: { name: serviceName, id: { kind: 'one', label: 'ID', summary: 'replica' } },
  options: { purge, yes, json },
  examples: ['svc serve terminate-replica chat 2'],
  destructive: true,
  run: async (args, context) => (await import('../commands/one-service.ts')).serveTerminateReplica(args, context),
});

const retry = defineCommand({
  path: ['serve', 'retry'],
  summary: 'Try again now what providers refused to a service',
  description:
    'A provider that refused a machine is asked again after a pause. This ends the pauses, for instance after a quota was raised or a right was granted. ' +
    'A service that stopped because no replica became ready launches replicas again.',
  arguments: { name: serviceName },
  options: { json },
  examples: ['svc serve retry chat'],
  run: async (args, context) => (await import('../commands/one-service.ts')).serveRetry(args, context),
});

/** `svc serve …` */
export const serveCommands: readonly Command[] = [
  up,
  update,
  rollback,
  pause,
  resume,
  versions,
  plan,
  status,
  explain,
  logs,
  metrics,
  down,
  retry,
  events,
  terminateReplica,
];
