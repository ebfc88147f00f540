import { z } from 'zod';
import { updateModes } from '../domain/task.ts';
import { replicaStates } from '../domain/replica/replica-state.ts';
import type { RouteName } from './routes.ts';
import {
  type blockerView,
  clusterView,
  diskView,
  eventView,
  type jobView,
  leftoverView,
  planView,
  type replicaView,
  serviceView,
  time,
  updatePlanView,
  updatePolicyChange,
} from './view-schemas.ts';

const basis = {
  dryRun: z.boolean().default(false).describe('Change nothing, and say what would change'),
  from: z.int().optional().describe('The version that the user saw; if the service has another one, nothing changes'),
};

/** The file's text and the additions of the command line. The server parses it again with the same code. */
const taskSource = {
  source: z.string().max(1_048_576).describe('The file as it is written'),
  file: z.string().describe('Absolute path, for relative paths in it and for messages'),
  envs: z.record(z.string(), z.string()).describe('Values that replace or complete `envs` of the file'),
  secrets: z.record(z.string(), z.string()).describe('The same for `secrets`'),
  workdir: z.string().optional().describe('Absolute path that replaces the one in the file'),
  upload: z
    .string()
    .regex(/^[0-9a-f]{16}-[0-9a-f]{8}$/)
    .optional()
    .describe("Folder below uploads/ of the controller's home to which a client on another machine brought the files that the task names"),
};

const named = z.strictObject({ name: z.string() });
const flag = z.stringbool().default(false);
const follow = flag.describe('Go on with what is new until the client leaves');
const purge = flag.describe('Forget it even when its machine cannot be removed');
const logsQuery = { follow, tail: z.coerce.number().int().min(0).optional().describe('Only so many of the last lines; otherwise all') };

/** Schemas of a route's request and reply. Absent parts are empty. */
export interface RouteSchemas {
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly reply: z.ZodType;
}

/** A disk with little free space. */
export type DiskView = z.infer<typeof diskView>;

/** Request and reply of every route in `routes.ts`. */
export const contract = {
  health: {
    reply: z.strictObject({
      apiVersion: z.int(),
      version: z.string(),
      pid: z.int(),
      startedAt: time,
      services: z.int(),
      serviceLimit: z.int(),
      clusters: z.int(),
      idleStopSeconds: z.number().nullable().describe('Seconds until it stops by itself; null while it is needed or when it never does'),
      log: z.string(),
      place: z
        .strictObject({
          provider: z.string(),
          region: z.string(),
          zone: z.string().nullable(),
          instanceType: z.string(),
          hourlyUsd: z.number(),
        })
        .nullable()
        .describe('Where its machine is; null on the machine where it was started by hand or by a command'),
    }),
  },
  stopController: {
    body: z.strictObject({ keepServices: z.boolean().describe('Stop although there are services, which go on without it') }),
    reply: z.strictObject({ stopping: z.literal(true) }),
  },
  snapshotState: {
    reply: z.strictObject({
      folder: z.string().describe('Has state.db and state.db.seal. Removed by the client, or by the controller within a week'),
      schema: z.int().describe('Version of the database schema'),
      services: z.array(z.string()),
      outside: z.array(z.string()).describe('Files of services outside of SVC_HOME, such as TLS keys'),
    }),
  },
  listServices: {
    reply: z.strictObject({
      services: z.array(serviceView),
      leftovers: z.array(leftoverView).optional().describe('Services and clusters that run, and that the state database does not know'),
      disk: diskView.optional().describe('The disk of SVC_HOME, when little of it is free'),
    }),
  },
  sweep: {
    reply: z.strictObject({
      removed: z.array(leftoverView),
      failed: z.array(z.strictObject({ leftover: leftoverView, reason: z.string() })),
    }),
  },
  getService: { params: named, reply: serviceView },
  createService: {
    body: z.strictObject({
      name: z.string().optional().describe('A generated one when absent'),
      expose: z.boolean().optional().describe('Whether the endpoint listens on all addresses; otherwise as the file says'),
      port: z.int().min(1).max(65_535).optional().describe('Of the endpoint; otherwise as the file says'),
      ...taskSource,
    }),
    reply: z.strictObject({
      service: serviceView,
      warning: z.string().optional().describe('What is not as it should be on the machine of the controller'),
    }),
  },
  updateService: {
    params: named,
    body: z.strictObject({
      policy: updatePolicyChange.optional().describe('Overrides `service.update` of the file'),
      ...basis,
      ...taskSource,
    }),
    reply: updatePlanView,
  },
  listVersions: {
    params: named,
    reply: z.strictObject({
      versions: z.array(
        z.strictObject({
          version: z.int(),
          createdAt: time,
          hash: z.string().describe('Of the file with its variables, without values of secrets; equal versions have the same'),
          isCurrent: z.boolean(),
          replicas: z.int().describe('Living replicas'),
          replicasReady: z.int(),
          changes: z.array(z.string()).readonly().describe('The difference from the version before'),
        }),
      ),
    }),
  },
  serviceFile: {
    params: named,
    reply: z.strictObject({
      source: z.string().describe('The text; `***` stands for values of secrets'),
      envs: z.record(z.string(), z.string()).describe('With those of the command line'),
      secrets: z.array(z.string()).describe('Names only'),
    }),
  },
  rollbackService: {
    params: named,
    body: z.strictObject({ to: z.int().min(1).optional().describe('The last one that worked before, when absent'), ...basis }),
    reply: updatePlanView,
  },
  pauseUpdate: {
    params: named,
    body: z.strictObject({ paused: z.boolean().describe('false lets it go on') }),
    reply: z.strictObject({ service: z.string(), version: z.int(), changed: z.boolean().describe('Whether it was not so before') }),
  },
  terminateService: { params: named, query: z.strictObject({ purge }), reply: z.strictObject({ service: z.string() }) },
  retryService: {
    params: named,
    reply: z.strictObject({
      service: z.string(),
      refusals: z.int().describe('How many refusals held, and hold no more'),
      restarted: z.enum(updateModes).optional().describe('The mode of a stopped update that begins again'),
    }),
  },
  terminateReplica: {
    params: z.strictObject({ name: z.string(), id: z.coerce.number().int().min(1) }),
    query: z.strictObject({ purge }),
    reply: z.strictObject({ service: z.string(), replicaId: z.int() }),
  },
  serviceEvents: {
    params: named,
    query: z.strictObject({ follow, after: z.coerce.number().int().min(0).default(0).describe('Only events with a greater id') }),
    reply: eventView,
  },
  explainService: {
    params: named,
    query: z.strictObject({
      id: z.coerce.number().int().min(1).optional().describe('Only of this replica'),
      all: flag.describe('Also offers that the file rules out'),
    }),
    reply: z.strictObject({
      service: z.string(),
      replicas: z.array(
        z.strictObject({
          id: z.int(),
          status: z.enum(replicaStates),
          reason: z.string().nullable(),
          reachedBy: z.string().nullable().describe('How requests get to it, in words; null before it has an address'),
          steps: z.array(eventView).describe('Of the search for its machine, oldest first'),
        }),
      ),
      plan: planView.nullable().describe('For one more replica'),
    }),
  },
  serviceLogs: {
    params: named,
    query: z.strictObject({
      target: z.enum(['replica', 'controller', 'load-balancer']),
      id: z.coerce.number().int().min(1).optional().describe('Of the replica, when `target` is one'),
      ...logsQuery,
    }),
    reply: z.string(),
  },
  serviceMetrics: { params: named, reply: z.string() },
  listClusters: { reply: z.strictObject({ clusters: z.array(clusterView) }) },
  launch: {
    body: z.strictObject({
      cluster: z.string().optional().describe('A generated name when absent'),
      mode: z.enum(['launch', 'exec']).describe('With exec the cluster must exist, and setup is not run again'),
      ...taskSource,
    }),
    reply: z.strictObject({ cluster: clusterView, jobId: z.int() }),
  },
  terminateCluster: { params: named, query: z.strictObject({ purge }), reply: z.strictObject({ cluster: z.string() }) },
  clusterLogs: {
    params: named,
    query: z.strictObject({ job: z.coerce.number().int().min(1).optional().describe('The newest when absent'), ...logsQuery }),
    reply: z.string(),
  },
} as const satisfies Record<RouteName, RouteSchemas>;

type Contract = typeof contract;
export type ReplicaView = z.output<typeof replicaView>;
export type BlockerView = z.output<typeof blockerView>;
export type ServiceView = z.output<typeof serviceView>;
export type LeftoverView = z.output<typeof leftoverView>;
export type EventView = z.output<typeof eventView>;
export type JobView = z.output<typeof jobView>;
export type ClusterView = z.output<typeof clusterView>;

type KeysNeeded<Given> = { [Key in keyof Given]-?: object extends Pick<Given, Key> ? never : Key }[keyof Given];

/** Typed values (`true`, `3`) of a request part that is sent as text. Keys with a default are optional. */
type Texts<Schema extends z.ZodType> = {
  readonly [Key in keyof z.output<Schema> & KeysNeeded<z.input<Schema>>]: z.output<Schema>[Key];
} & {
  readonly [Key in Exclude<keyof z.output<Schema>, KeysNeeded<z.input<Schema>>>]?: z.output<Schema>[Key];
};

/** `{ key: value }`. The key is optional when every field of the value is. */
type Under<Key extends string, Value> = object extends Value ? { readonly [K in Key]?: Value } : { readonly [K in Key]: Value };

/** Input of a route. Parts and fields that the route does not require are optional. */
export type RouteInput<Name extends RouteName> = (Contract[Name] extends { readonly params: infer Schema extends z.ZodType }
  ? Under<'params', Texts<Schema>>
  : unknown) &
  (Contract[Name] extends { readonly query: infer Schema extends z.ZodType } ? Under<'query', Texts<Schema>> : unknown) &
  (Contract[Name] extends { readonly body: infer Schema extends z.ZodType } ? Under<'body', z.input<Schema>> : unknown);

/** The request as a route's handler gets it: validated, with defaults filled in. */
export interface RouteRequest<Name extends RouteName> {
  readonly params: Contract[Name] extends { readonly params: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;
  readonly query: Contract[Name] extends { readonly query: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;
  readonly body: Contract[Name] extends { readonly body: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;
  readonly signal: AbortSignal;
}

/** A route's reply (for `lines`: one line; for `text`: a string). */
export type RouteReply<Name extends RouteName> = z.output<Contract[Name]['reply']>;
