import { z } from 'zod';
import { refusalKinds, refusalScopes } from '../domain/placement.ts';
import { replicaStates } from '../domain/replica/replica-state.ts';
import { serviceStates } from '../domain/service-state.ts';
import { updateModes } from '../domain/task.ts';

const plannedOfferView = z.strictObject({
  provider: z.string(),
  region: z.string(),
  zone: z.string().nullable(),
  instanceType: z.string(),
  nodes: z.int().describe('So many such machines make up one replica; prices are of all of them, the rest is of each'),
  cpus: z.number(),
  memoryGb: z.number(),
  accelerators: z.string().nullable().describe('NAME:COUNT'),
  spot: z.boolean(),
  hourlyUsd: z.number(),
  monthlyUsd: z.number().describe('Of 730 hours'),
  alternative: z.int().describe("Which alternative of the file's resources it is for, counted from 1"),
  verdict: z.enum(['chosen', 'possible', 'refused', 'excluded']),
  replicas: z.array(z.int()).readonly().describe('Numbers of the replicas that it is chosen for'),
  why: z.string(),
});

/** The locations of replicas, with the reasons. */
export const planView = z.strictObject({
  replicas: z.int(),
  offers: z.array(plannedOfferView).readonly().describe('Best first'),
  places: z.array(z.strictObject({ name: z.string(), takesPart: z.boolean(), why: z.string().nullable() })).readonly(),
  hourlyUsd: z.number(),
  monthlyUsd: z.number(),
  notes: z.array(z.string()).readonly(),
  isMisnamed: z
    .boolean()
    .optional()
    .describe('There is no offer because names of providers or of their parts are wrong; the notes name them'),
  withoutSpot: z
    .strictObject({ replicas: z.int(), hourlyUsd: z.number() })
    .optional()
    .describe('Replicas on demand, and their price, while no spot replica is ready'),
});

/** A time, in ISO 8601. */
export const time = z.iso.datetime();

/** A replica in a listing. */
export const replicaView = z.strictObject({
  id: z.int(),
  version: z.int(),
  status: z.enum(replicaStates),
  endpoint: z.string().nullable().describe('Where the replica itself listens; null while unknown'),
  createdAt: time,
  launchedAt: time.nullable(),
  readyAt: time.nullable().describe('When it was first ready'),
  endedAt: time.nullable(),
  provider: z.string().nullable(),
  region: z.string().nullable(),
  zone: z.string().nullable(),
  resources: z.string().nullable(),
  spot: z.boolean(),
  hourlyUsd: z.number().nullable(),
  reason: z.string().nullable().describe('Why it is in this state, for people'),
});

/** A provider's refusal that currently keeps a service from launching its desired replicas. */
export const blockerView = z.strictObject({
  provider: z.string(),
  region: z.string(),
  zone: z.string().nullable(),
  instanceType: z.string().describe('What was asked for'),
  cause: z.enum(refusalKinds),
  scope: z.enum(refusalScopes).describe('What else the refusal covers'),
  covers: z.string().describe('The same in words'),
  reason: z.string().describe("The provider's own words"),
  attempts: z.int().describe('How often in a row it refused'),
  nextAttemptAt: time.describe('When it is asked again, unless the refusal ends before'),
});

/** An update in progress, or one that stopped. */
const updateView = z.strictObject({
  from: z.int().describe('The version that it began with'),
  mode: z.enum(updateModes),
  startedAt: time,
  stopped: z.boolean().describe('No replica of the new version became ready, or its canary was rolled back; `reason` says more'),
  paused: z.boolean().describe('A user holds it'),
  share: z.number().nullable().describe('Share of the requests that the new version gets, 0 to 1; null: every ready replica serves alike'),
  replicasReady: z.int().describe('Of the new version'),
});

const policyFields = {
  mode: z.enum(updateModes),
  surge: z.union([z.int().min(0), z.strictObject({ percent: z.int().min(0).max(100) })]).describe('Replicas beyond the desired number'),
  maxUnavailable: z.int().min(0),
  steps: z.array(z.int().min(1).max(99)).min(1).readonly().describe('Shares of the requests that a canary gets, percent'),
  bakeSeconds: z.number().min(0).describe('How long a step of a canary lasts, and old replicas stay after a switch'),
  session: z.union([z.strictObject({ cookie: z.string() }), z.strictObject({ header: z.string() })]).optional(),
};

/** Settings of an update that override those of the file. */
export const updatePolicyChange = z.strictObject(policyFields).omit({ session: true }).partial();

/** What an update or a rollback changes. */
export const updatePlanView = z.strictObject({
  version: z.int().nullable().describe('The new version; null when nothing changes'),
  from: z.int(),
  changes: z.array(z.string()).readonly().describe('The difference between the files, line by line, without values of secrets'),
  replaced: z.int().describe('How many living replicas are replaced'),
  keepsReplicas: z.boolean().describe('Whether the program stays the same, so that living replicas are kept'),
  update: z.strictObject(policyFields),
  noCapacity: z
    .string()
    .optional()
    .describe('Why the replicas that the update must add have no capacity now; absent when they have, or none is added'),
});

/** A service in a listing. */
export const serviceView = z.strictObject({
  name: z.string(),
  status: z.enum(serviceStates),
  activeVersions: z.array(z.int()),
  version: z.int(),
  createdAt: time,
  firstReadyAt: time.nullable(),
  uptimeSeconds: z.number().nullable().describe('Since it was first ready'),
  endpoint: z.string(),
  exposed: z.boolean(),
  replicasReady: z.int(),
  replicasTotal: z.int().describe('All that have not failed or ended'),
  targetReplicas: z.int(),
  autoscaling: z.string(),
  loadBalancingPolicy: z.string(),
  requestedResources: z.string(),
  hourlyUsd: z.number(),
  reason: z.string().nullable(),
  update: updateView.optional().describe('Until all replicas are of `version`'),
  lastScaling: z
    .strictObject({ at: time, reason: z.string() })
    .optional()
    .describe('The last change of the number of replicas that the load requires'),
  costLimited: z.int().optional().describe('Replicas that `max_hourly_cost` keeps from being launched'),
  controllerPid: z.int().nullable().describe("Process of the service's reconciler"),
  balancerPid: z.int().nullable(),
  handingOver: z.literal(true).optional().describe('Until the balancer of this machine serves with the settings of `version`'),
  processCrashes: z
    .array(z.strictObject({ process: z.enum(['reconciler', 'balancer']), count: z.int(), lastAt: time, lastError: z.string() }))
    .optional()
    .describe('Processes of the service that crashed in the last ten minutes and were started again: how often, and the last error'),
  balancers: z
    .array(z.strictObject({ name: z.string(), status: z.enum(['starting', 'listening', 'port-busy', 'failing', 'unreachable']) }))
    .optional()
    .describe('Where balancers on other machines serve the endpoint: each of them'),
  blockers: z.array(blockerView).optional().describe('While a replica waits for a machine: the refusals that hold, the first to end first'),
  replicas: z.array(replicaView),
});

/** Resources of a service or cluster from before the state database was emptied, restored or replaced. */
export const leftoverView = z.strictObject({
  kind: z.enum(['service', 'cluster']),
  key: z.string(),
  name: z.string().nullable(),
  port: z.int().nullable(),
  balancerPid: z.int().nullable().describe('The process that serves its endpoint'),
  machines: z.array(z.strictObject({ provider: z.string(), id: z.string() })),
  unasked: z
    .array(z.strictObject({ provider: z.string(), reason: z.string() }))
    .describe('Providers that did not list machines: some may run there'),
});

/** One event of a history. */
export const eventView = z.strictObject({
  id: z.int(),
  at: time,
  service: z.string(),
  replicaId: z.int().nullable(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  cause: z.string(),
  message: z.string(),
});

/** A job of a cluster. */
export const jobView = z.strictObject({
  id: z.int(),
  name: z.string().nullable(),
  status: z.enum(['PENDING', 'SETTING_UP', 'RUNNING', 'SUCCEEDED', 'FAILED', 'FAILED_SETUP', 'CANCELLED']),
  createdAt: time,
  endedAt: time.nullable(),
  exitCode: z.int().nullable(),
});

/** A cluster in a listing. */
export const clusterView = z.strictObject({
  name: z.string(),
  status: z.enum(['INIT', 'UP', 'SHUTTING_DOWN', 'FAILED']),
  launchedAt: time,
  provider: z.string().nullable(),
  region: z.string().nullable(),
  resources: z.string().nullable(),
  hourlyUsd: z.number().nullable(),
  reason: z.string().nullable(),
  ports: z
    .array(z.strictObject({ port: z.int(), address: z.string().describe('As 127.0.0.1:20000') }))
    .readonly()
    .describe("Ports that its jobs name, and where they are reached on the controller's machine"),
  jobs: z.array(jobView),
});

/** A disk with little free space. */
export const diskView = z.strictObject({
  folder: z.string(),
  freeBytes: z.number(),
  freeInodes: z.number().nullable().describe('null for a file system that does not count them'),
});
