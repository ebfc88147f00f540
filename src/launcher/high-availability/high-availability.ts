import { kubeContexts } from '../../kubernetes/contexts.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import { KubernetesRemote } from '../../remote/kubernetes/index.ts';
import type { Remote } from '../../remote/remote.ts';
import { isoTime } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/fingerprint.ts';
import { homePaths } from '../../shared/paths.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { readControllerRecord, removeControllerRecord, writeControllerRecord, type ControllerRecord } from '../controller-record.ts';
import { wishOf } from '../elsewhere.ts';
import { leaving, locked, noteIn, type LauncherDeps } from '../launcher-deps.ts';
import { removeLeftovers } from '../leftovers.ts';
import { applyDesign, isThere, knownOfCluster } from './apply.ts';
import { clusterIdentity, findAnchor, readToken } from './cluster-facts.ts';
import type { HighAvailabilityDesign } from './design.ts';
import { designOf } from './design-of.ts';
import { madeInCluster, refuseFixed } from './differences.ts';
import type { Leader } from './leader.ts';
import { haNames, inContainer } from './names.ts';
import type { PodRole } from './object-parts.ts';
import { isMarked } from './ownership.ts';
import { removeObjects } from './remove.ts';
import { readDeployment, waitForRollout } from './rollout.ts';
import { gatherSecrets, type GivenSecrets } from './secrets-of.ts';
import { chooseSite, needKubernetes, type ClusterSite } from './site.ts';

/** What a controller in a cluster is brought up and reached with. */
export interface HighAvailabilityDeps extends LauncherDeps {
  /** The API of a cluster, as this command's user. */
  readonly openApi: (site: ClusterSite) => KubeApi;
}

/** What would be made, or made anew. */
export interface Prepared {
  readonly design: HighAvailabilityDesign;
  readonly given: GivenSecrets;
}

/** Container of the controller's pods in which its program runs. */
const controllerContainer = 'controller';

/** Socket of the API in the leader's pod. */
const apiSocket = homePaths(inContainer.home, inContainer.uid).controllerSocket;

/** Where the controller is to be; the recorded one stays where it is. Throws SVC_NEEDS_KUBERNETES. */
export async function siteOf(deps: HighAvailabilityDeps, wished?: string): Promise<ClusterSite> {
  const known = readControllerRecord(deps.paths.controllerRecord)?.cluster;
  if (known !== undefined && wished === undefined) return known;
  await needKubernetes(deps.places);
  return chooseSite(await deps.config(), wished);
}

/**
 * Makes sure that there is a controller in the cluster, and that this home knows of it. One that somebody else brought up there is used as it is. Safe to
 * repeat, and to interrupt.
 */
export async function ensureInCluster(deps: HighAvailabilityDeps): Promise<ClusterSite> {
  return locked(deps, async () => {
    const known = readControllerRecord(deps.paths.controllerRecord);
    if (known?.isLeaving === true) throw leaving();
    const site = await siteOf(deps);
    const api = deps.openApi(site);
    const record = known ?? (await newRecord(site, api, deps));
    if (await isThere(site, record.key, { api, signal: deps.signal })) {
      if (record.machineId === null) noteIn(deps)({ machineId: idOf(site), program: haNames.controller });
      return site;
    }
    await applyAll(site, api, await prepare(site, record.key, deps), deps);
    return site;
  });
}

/**
 * For whoever waits for the controller to come up: when somebody removes the object that owns it meanwhile, and so all of it, it is made again at once. One
 * that a command of this home removes stays away. Throws SVC_CONTROLLER_UNREACHABLE then.
 */
export async function healInCluster(deps: HighAvailabilityDeps): Promise<void> {
  const { site, record } = recorded(deps);
  if (record.isLeaving) throw leaving();
  if (await isThere(site, record.key, { api: deps.openApi(site), signal: deps.signal })) return;
  await ensureInCluster(deps);
}

/** What the configuration makes of a cluster now. Nothing is changed there. */
export async function prepare(site: ClusterSite, key: string, deps: HighAvailabilityDeps): Promise<Prepared> {
  const { places, paths, signal } = deps;
  const config = await deps.config();
  const api = deps.openApi(site);
  const known = await knownOfCluster(site, key, { api, signal }, config.serve.controller.endpointService);
  const design = designOf(config, site, known);
  const token = (await readToken(api, site, signal)) ?? randomHex(32);
  const given = await gatherSecrets(key, site, { config, places: await places.states(), paths, token, signal });
  return { design, given };
}

/** The key of the controller that is there, or the one that a new one gets: the same each time, and another one in any other namespace or cluster. */
export async function keyFor(site: ClusterSite, api: KubeApi, signal: AbortSignal): Promise<string> {
  const anchor = await findAnchor(api, site, signal);
  if (anchor !== undefined) return anchor.key;
  const cluster = (await clusterIdentity(api, signal)) ?? kubeContexts().cluster(site.context).server;
  return derivedKey(cluster, site);
}

/** `cluster`: what tells it from others. */
export function derivedKey(cluster: string, { namespace }: ClusterSite): string {
  return fingerprint(JSON.stringify([cluster, namespace]));
}

/**
 * Applies what the configuration says now, and sees the pods replaced one after the other. Tells whether they run another image. Throws
 * SVC_CONTROLLER_IMMUTABLE, with nothing changed, when it asks for what only a new controller can have.
 */
export async function upgradeInCluster(deps: HighAvailabilityDeps): Promise<{ readonly isNew: boolean }> {
  return locked(deps, async () => {
    const { site, record } = recorded(deps);
    const api = deps.openApi(site);
    const before = await imageOf(site, api, deps.signal);
    const design = await applyAll(site, api, await prepareChange(site, api, record.key, deps), deps);
    await waitForRollout(site, { ...deps, api });
    return { isNew: before !== design.image };
  });
}

/** Ends all pods one after the other, and starts new ones. */
export async function restartInCluster(deps: HighAvailabilityDeps): Promise<void> {
  await locked(deps, async () => {
    const there = recorded(deps);
    const { site } = there;
    const api = deps.openApi(site);
    const annotations = { 'svc-restarted-at': isoTime(deps.clock.now()) };
    for (const role of ['controller', 'balancer'] as const)
      await change(api, there, role, { spec: { template: { metadata: { annotations } } } }, deps.signal);
    await waitForRollout(site, { ...deps, api });
  });
}

/** Ends the controllers and lets the balancers go on; `start` brings them back. */
export async function stopInCluster(deps: HighAvailabilityDeps): Promise<void> {
  const there = recorded(deps);
  await change(deps.openApi(there.site), there, 'controller', { spec: { replicas: 0 } }, deps.signal);
}

/** Brings back controllers that were stopped, as the configuration says now. Throws SVC_CONTROLLER_IMMUTABLE as an upgrade does. */
export async function startInCluster(deps: HighAvailabilityDeps): Promise<void> {
  await locked(deps, async () => {
    const { site, record } = recorded(deps);
    const api = deps.openApi(site);
    await applyAll(site, api, await prepareChange(site, api, record.key, deps), deps);
  });
}

/** Removes all of it from the cluster, and forgets it. With `purge` also everything that it launched anywhere, and pods that never end. */
export async function removeFromCluster(deps: HighAvailabilityDeps, purge: boolean): Promise<void> {
  await locked(deps, async () => {
    const { site, record } = recorded(deps);
    noteIn(deps)({ isLeaving: true });
    await removeObjects(site, record.key, purge, { ...deps, api: deps.openApi(site) });
    if (purge) await removeLeftovers(record.key, deps);
    removeControllerRecord(deps.paths.controllerRecord);
  });
}

/** How to work in the leader's pod. */
export function leaderRemote(site: ClusterSite, { pod }: Pick<Leader, 'pod'>, deps: HighAvailabilityDeps): Remote {
  const { paths, clock } = deps;
  return new KubernetesRemote({
    api: async () => deps.openApi(site),
    context: site.context,
    pod: { namespace: site.namespace, name: pod, container: controllerContainer },
    baseDir: inContainer.volume,
    environment: {},
    reach: 'port-forward',
    paths,
    clock,
  });
}

/** A socket here that leads to the API of the controller in a pod. */
export function wayToLeader(remote: Remote, signal: AbortSignal): Promise<string> {
  return remote.forwardSocket(apiSocket, { signal });
}

/** What this home knows of the controller in a cluster. */
export interface Recorded {
  readonly site: ClusterSite;
  readonly record: ControllerRecord;
}

/** What is recorded of the controller in a cluster. Throws SVC_CONTROLLER_UNREACHABLE when nothing is. */
export function recorded({ paths }: Pick<LauncherDeps, 'paths'>): Recorded {
  const record = readControllerRecord(paths.controllerRecord);
  if (record?.cluster === undefined) throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'There is no controller in a cluster.');
  return { site: record.cluster, record };
}

/** As `prepare`, for a controller that is there. */
async function prepareChange(site: ClusterSite, api: KubeApi, key: string, deps: HighAvailabilityDeps): Promise<Prepared> {
  const prepared = await prepare(site, key, deps);
  refuseFixed(prepared.design, await madeInCluster(site, api, deps.signal));
  return prepared;
}

async function applyAll(
  site: ClusterSite,
  api: KubeApi,
  { design, given }: Prepared,
  deps: HighAvailabilityDeps,
): Promise<HighAvailabilityDesign> {
  for (const sentence of given.leftOut) deps.onStep(sentence);
  const applied = await applyDesign(design, given.secrets, { ...deps, api });
  const { hourlyUsd, publicHost } = applied;
  const place = { provider: 'kubernetes', region: site.context, zone: null, instanceType: describePods(applied), hourlyUsd };
  noteIn(deps)({ machineId: idOf(site), program: haNames.controller, publicHost, place, wished: wishOf(await deps.config()) });
  return applied;
}

/** What there is instead of a machine, for people. */
export function describePods({ database, balancers }: Pick<HighAvailabilityDesign, 'database' | 'balancers'>): string {
  const controllers = database === 'sqlite' ? '1 controller' : '2 controllers';
  return `${controllers} and ${balancers} ${balancers === 1 ? 'balancer' : 'balancers'} as pods`;
}

async function newRecord(site: ClusterSite, api: KubeApi, deps: HighAvailabilityDeps): Promise<ControllerRecord> {
  const record: ControllerRecord = {
    key: await keyFor(site, api, deps.signal),
    place: { provider: 'kubernetes', region: site.context, zone: null, instanceType: 'pods', hourlyUsd: 0 },
    machineId: null,
    program: null,
    boot: null,
    socket: apiSocket,
    publicHost: null,
    wished: wishOf(await deps.config()),
    createdAt: deps.clock.now(),
    isLeaving: false,
    cluster: site,
  };
  writeControllerRecord(deps.paths.controllerRecord, record);
  return record;
}

const idOf = ({ context, namespace }: ClusterSite): string => `${context}/${namespace}/${haNames.controller}`;

async function imageOf(site: ClusterSite, api: KubeApi, signal: AbortSignal): Promise<string | undefined> {
  const found = await readDeployment(api, site, 'controller', signal);
  return found?.spec?.template?.spec?.containers?.[0]?.image;
}

async function change(api: KubeApi, { site, record }: Recorded, role: PodRole, patch: unknown, signal: AbortSignal): Promise<void> {
  const { namespace } = site;
  const there = await readDeployment(api, site, role, signal);
  const isOurs = there !== undefined && isMarked(there, record.key);
  if (isOurs && (await api.merge(pathOfOne('Deployment', namespace, haNames[role]), patch, { signal })) !== undefined) return;
  throw new SvcError(
    'SVC_CONTROLLER_UNREACHABLE',
    `The namespace ${namespace} has no Deployment ${haNames[role]} of this controller any more.`,
    {
      hint: 'To make it again: svc controller upgrade',
    },
  );
}
