import { kubeContexts } from '../../kubernetes/contexts.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import { KubernetesRemote } from '../../remote/kubernetes/index.ts';
import type { Remote } from '../../remote/remote.ts';
import { isoTime } from '../../shared/clock.ts';
import { removeEverywhere } from '../../provision/left-machines.ts';
import { settledStates } from '../../provision/providers.ts';
import { SvcError } from '../../shared/errors.ts';
import { fingerprint, randomHex } from '../../shared/hex.ts';
import { homePaths } from '../../shared/paths.ts';
import { readControllerRecord, removeControllerRecord, writeControllerRecord, type ControllerRecord } from '../controller-record.ts';
import { requestedResourcesOf } from '../remote-controller.ts';
import { terminatingError, locked, recordPatcher, type LauncherDeps } from '../launcher-deps.ts';
import { applyDesign, isThere } from './apply.ts';
import { clusterIdentity, findAnchor, readToken, readClusterFacts } from './cluster-facts.ts';
import { designOf, type HighAvailabilityDesign } from './design.ts';
import { madeInCluster, refuseFixed } from './differences.ts';
import type { Leader } from './leader.ts';
import { haNames, inContainer } from './names.ts';
import { podRoles, type PodRole } from './object-parts.ts';
import { isMarked } from './ownership.ts';
import { removeObjects } from './remove.ts';
import { readDeployment, waitForRollout } from './rollout.ts';
import { gatherSecrets, type GivenSecrets } from './secrets-of.ts';
import { chooseSite, needKubernetes, type KubernetesSite } from './site.ts';

/** Dependencies of deploying and reaching a controller in a Kubernetes cluster. */
export interface HighAvailabilityDeps extends LauncherDeps {
  /** With the rights of this command's user. */
  readonly openApi: (site: KubernetesSite) => KubeApi;
}

interface Prepared {
  readonly design: HighAvailabilityDesign;
  readonly given: GivenSecrets;
}

const controllerContainer = 'controller';

const apiSocket = homePaths(inContainer.home, inContainer.uid).controllerSocket;

/** Where the controller will be: from an existing record unless a context is requested. Throws SVC_NEEDS_KUBERNETES. */
export async function siteOf(deps: HighAvailabilityDeps, requestedContext?: string): Promise<KubernetesSite> {
  const known = readControllerRecord(deps.paths.controllerRecord)?.cluster;
  if (known !== undefined && requestedContext === undefined) return known;
  await needKubernetes(deps.providers, deps.onStep, deps.signal);
  return chooseSite(await deps.config(), requestedContext);
}

/**
 * Makes sure that the Kubernetes cluster has a controller and this home its record. A controller that another user
 * deployed there is used unchanged. Safe to repeat and to interrupt.
 */
export async function ensureInCluster(deps: HighAvailabilityDeps): Promise<KubernetesSite> {
  return locked(deps, async () => {
    const known = readControllerRecord(deps.paths.controllerRecord);
    if (known?.isTerminating === true) throw terminatingError();
    const site = await siteOf(deps);
    const api = deps.openApi(site);
    const record = known ?? (await newRecord(site, api, deps));
    if (await isThere(site, record.key, { api, signal: deps.signal })) {
      if (record.machineId === null) recordPatcher(deps)({ machineId: idOf(site), program: haNames.controller });
      return site;
    }
    await applyAll(site, api, await prepare(site, record.key, deps), deps);
    return site;
  });
}

/**
 * For callers that wait for the controller to start. When another user removes its owning object, and thereby all
 * others, creates them again at once. Throws SVC_CONTROLLER_UNREACHABLE while a command of this home removes them.
 */
export async function healInCluster(deps: HighAvailabilityDeps): Promise<void> {
  const { site, record } = recorded(deps);
  if (record.isTerminating) throw terminatingError();
  if (await isThere(site, record.key, { api: deps.openApi(site), signal: deps.signal })) return;
  await ensureInCluster(deps);
}

/** The design and secrets by the current configuration. Changes nothing in the Kubernetes cluster. */
export async function prepare(site: KubernetesSite, key: string, deps: HighAvailabilityDeps): Promise<Prepared> {
  const { providers, paths, signal } = deps;
  const config = await deps.config();
  const api = deps.openApi(site);
  const known = await readClusterFacts(site, key, { api, signal }, config.serve.controller.endpointService);
  const design = designOf(config, site, known);
  const token = (await readToken(api, site, signal)) ?? randomHex(32);
  const given = await gatherSecrets(key, site, {
    config,
    providers: await settledStates(() => providers.states(), deps.onStep, signal),
    paths,
    token,
    signal,
  });
  return { design, given };
}

/** The existing controller's key, or a new one's: constant, and unique per Kubernetes cluster and namespace. */
export async function keyFor(site: KubernetesSite, api: KubeApi, signal: AbortSignal): Promise<string> {
  const anchor = await findAnchor(api, site, signal);
  if (anchor !== undefined) return anchor.key;
  const clusterId = (await clusterIdentity(api, signal)) ?? kubeContexts().cluster(site.context).server;
  return derivedKey(clusterId, site);
}

/** `clusterId` is unique per Kubernetes cluster. */
export function derivedKey(clusterId: string, { namespace }: KubernetesSite): string {
  return fingerprint(JSON.stringify([clusterId, namespace]));
}

/**
 * Applies the configuration and waits until the pods are replaced one by one. `isNew`: they run another image. Throws
 * SVC_CONTROLLER_IMMUTABLE, before any change, when only a new controller can have the configured values.
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

/** Replaces all pods, one after the other. */
export async function restartInCluster(deps: HighAvailabilityDeps): Promise<void> {
  await locked(deps, async () => {
    const there = recorded(deps);
    const { site } = there;
    const api = deps.openApi(site);
    const annotations = { 'svc-restarted-at': isoTime(deps.clock.now()) };
    for (const role of podRoles) {
      // A controller of an older version has no health checkers.
      if (role === 'checker' && (await readDeployment(api, site, role, deps.signal)) === undefined) continue;
      await change(api, there, role, { spec: { template: { metadata: { annotations } } } }, deps.signal);
    }
    await waitForRollout(site, { ...deps, api });
  });
}

/** Ends the controllers; balancers continue. `startInCluster` starts the controllers again. */
export async function stopInCluster(deps: HighAvailabilityDeps): Promise<void> {
  const there = recorded(deps);
  await change(deps.openApi(there.site), there, 'controller', { spec: { replicas: 0 } }, deps.signal);
}

/** Starts stopped controllers with the current configuration. Throws SVC_CONTROLLER_IMMUTABLE. */
export async function startInCluster(deps: HighAvailabilityDeps): Promise<void> {
  await locked(deps, async () => {
    const { site, record } = recorded(deps);
    const api = deps.openApi(site);
    await applyAll(site, api, await prepareChange(site, api, record.key, deps), deps);
  });
}

/**
 * Removes all objects from the Kubernetes cluster, and the record. `purge`: also all that the controller launched at
 * any provider, and pods that never end.
 */
export async function removeFromCluster(deps: HighAvailabilityDeps, purge: boolean): Promise<void> {
  await locked(deps, async () => {
    const { site, record } = recorded(deps);
    recordPatcher(deps)({ isTerminating: true });
    await removeObjects(site, record.key, purge, { ...deps, api: deps.openApi(site) });
    if (purge) await removeEverywhere(deps.providers, { 'svc-owner': record.key }, record.key, deps);
    removeControllerRecord(deps.paths.controllerRecord);
  });
}

/** A `Remote` for the leader's pod. */
export function leaderRemote(site: KubernetesSite, { pod }: Pick<Leader, 'pod'>, deps: HighAvailabilityDeps): Remote {
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

/** A local socket that leads to the API of the leader. */
export function openLeaderTunnel(remote: Remote, signal: AbortSignal): Promise<string> {
  return remote.forwardSocket(apiSocket, { signal });
}

interface Recorded {
  readonly site: KubernetesSite;
  readonly record: ControllerRecord;
}

/** Throws SVC_CONTROLLER_UNREACHABLE without a record of a controller in a Kubernetes cluster. */
export function recorded({ paths }: Pick<LauncherDeps, 'paths'>): Recorded {
  const record = readControllerRecord(paths.controllerRecord);
  if (record?.cluster === undefined) throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'There is no controller in a cluster.');
  return { site: record.cluster, record };
}

async function prepareChange(site: KubernetesSite, api: KubeApi, key: string, deps: HighAvailabilityDeps): Promise<Prepared> {
  const prepared = await prepare(site, key, deps);
  refuseFixed(prepared.design, await madeInCluster(site, api, deps.signal));
  return prepared;
}

async function applyAll(
  site: KubernetesSite,
  api: KubeApi,
  { design, given }: Prepared,
  deps: HighAvailabilityDeps,
): Promise<HighAvailabilityDesign> {
  for (const sentence of given.leftOut) deps.onStep(sentence);
  const applied = await applyDesign(design, given.secrets, { ...deps, api });
  const { hourlyUsd, publicHost } = applied;
  const machine = { provider: 'kubernetes', region: site.context, zone: null, instanceType: describePods(applied), hourlyUsd };
  recordPatcher(deps)({
    machineId: idOf(site),
    program: haNames.controller,
    publicHost,
    machine,
    requestedResources: requestedResourcesOf(await deps.config()),
  });
  return applied;
}

/** For users, such as `2 controllers and 2 balancers as pods`. */
export function describePods({ database, balancers }: Pick<HighAvailabilityDesign, 'database' | 'balancers'>): string {
  const controllers = database === 'sqlite' ? '1 controller' : '2 controllers';
  return `${controllers} and ${balancers} ${balancers === 1 ? 'balancer' : 'balancers'} as pods`;
}

async function newRecord(site: KubernetesSite, api: KubeApi, deps: HighAvailabilityDeps): Promise<ControllerRecord> {
  const record: ControllerRecord = {
    key: await keyFor(site, api, deps.signal),
    machine: { provider: 'kubernetes', region: site.context, zone: null, instanceType: 'pods', hourlyUsd: 0 },
    machineId: null,
    program: null,
    boot: null,
    socket: apiSocket,
    publicHost: null,
    requestedResources: requestedResourcesOf(await deps.config()),
    createdAt: deps.clock.now(),
    isTerminating: false,
    cluster: site,
  };
  writeControllerRecord(deps.paths.controllerRecord, record);
  return record;
}

const idOf = ({ context, namespace }: KubernetesSite): string => `${context}/${namespace}/${haNames.controller}`;

async function imageOf(site: KubernetesSite, api: KubeApi, signal: AbortSignal): Promise<string | undefined> {
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
