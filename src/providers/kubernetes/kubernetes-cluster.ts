import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import type { Clock } from '../../shared/clock.ts';
import { parseJson } from '../../shared/json.ts';
import { unlessAborted } from '../../shared/deadline.ts';
import type { ListedMachine, MachineSpec, MachineStatus } from '../provider.ts';
import { isDenied } from './errors.ts';
import { machineIdOf, ownAnnotations, ownLabels, podNames, tagLabel, textEntries, type MachineRef } from './names.ts';
import { countedNode, countedPod, nodeFacts, podLoad, type Node, type NodeFacts } from './nodes/node-facts.ts';
import { isDeletionIdle, needsForcedDeletion, NodeHealth, type NodeTrouble } from './nodes/node-health.ts';
import { areMostNodesCutOff, isWaitingForRoom, machineStatus, needsEvents, type PodEvent, type PodSight } from './pod-status.ts';
import { byMachine, type PodsByMachine, type PodWatches } from './pod-watches.ts';

/** `hidden`: the user may not read nodes. */
export type NodeSurvey = { readonly nodes: readonly NodeFacts[] } | { readonly hidden: true };

/** A machine as its Kubernetes cluster reports it. */
export interface MachineSight {
  readonly status: MachineStatus;
  /** Whether there is a pod of it, in any state. */
  readonly hasPods: boolean;
  /** Whether it boots and has no node yet. */
  readonly isWaitingForRoom: boolean;
  /** Its maximum wait for room, s; undefined: unknown. */
  readonly patienceSeconds: number | undefined;
}

/** Validity of a survey, ms: a task's alternatives ask one after the other. */
const surveyMs = 2_000;
/** Validity of a pod's events, ms: a booting machine is polled twice a second. */
const eventsMs = 1_500;
/** Between event requests, ms: an API server scans all events of a namespace to find those of one pod. */
const eventsApartMs = 50;
/** Unused events are forgotten after this time, ms. */
const keptEventsMs = 60_000;
/** Maximum delay between a pod's end and the event that explains it, ms. */
const eventDelayMs = 300;
/** For more machines, a request covers all pods of the namespace. */
const namedAtOnce = 40;

/** A context's nodes, and this home's pods. */
export class KubernetesCluster {
  readonly context: string;
  readonly api: KubeApi;
  readonly #clock: Clock;
  readonly #watches: Pick<PodWatches, 'pods' | 'nodes'>;
  readonly #health: NodeHealth;
  #survey: { readonly at: number; readonly result: Promise<NodeSurvey> } | undefined;
  readonly #events = new Map<string, { readonly at: number; readonly events: readonly PodEvent[] }>();

  constructor(api: KubeApi, clock: Clock, watches: Pick<PodWatches, 'pods' | 'nodes'>) {
    this.context = api.context;
    this.api = api;
    this.#clock = clock;
    this.#watches = watches;
    this.#health = new NodeHealth(clock);
  }

  survey(signal: AbortSignal | undefined): Promise<NodeSurvey> {
    const now = this.#clock.monotonic();
    if (this.#survey === undefined || now - this.#survey.at >= surveyMs) {
      // Continues when the first caller is cancelled: others may wait for it too.
      const survey = { at: now, result: this.#readSurvey() };
      this.#survey = survey;
      survey.result.catch(() => {
        if (this.#survey === survey) this.#survey = undefined;
      });
    }
    return unlessAborted(this.#survey.result, signal);
  }

  changed(): void {
    this.#survey = undefined;
  }

  async pods(namespace: string, bases: readonly string[], signal: AbortSignal | undefined): Promise<PodsByMachine> {
    const labelSelector = bases.length <= namedAtOnce ? `${ownLabels.machine} in (${bases.join(',')})` : ownLabels.machine;
    const { items } = await this.api.list<Pod>(pathOfAll('Pod', namespace), { labelSelector, signal });
    return byMachine(items);
  }

  /** As the watch shows them, where it shows all pods of a machine. */
  async currentPods(namespace: string, bases: readonly string[], signal: AbortSignal | undefined): Promise<PodsByMachine> {
    const watched = this.#watches.pods(this.context, namespace);
    const known = new Map(bases.flatMap((base) => (isWhole(base, watched?.get(base)) ? [[base, watched?.get(base) ?? []] as const] : [])));
    // A machine that the watch shows in part or not at all may be newer than its last report.
    const unknown = bases.filter((base) => !known.has(base));
    if (unknown.length > 0) for (const [base, pods] of await this.pods(namespace, unknown, signal)) known.set(base, pods);
    return known;
  }

  /** Ending machines count as gone, unless their node cannot end them now, or will never confirm it. */
  async machines(namespace: string, tags: MachineSpec['tags'], signal: AbortSignal | undefined): Promise<readonly ListedMachine[]> {
    const required = Object.entries(tags).map(([name, value]) => `${name}=${tagLabel(value)}`);
    const labelSelector = [ownLabels.machine, ...required].join(',');
    const { items } = await this.api.list<Pod>(pathOfAll('Pod', namespace), { labelSelector, signal });
    const troubles = await this.troubles(
      items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined),
      signal,
    );
    const found = new Map<string, ListedMachine>();
    for (const { metadata, spec } of items) {
      const base = metadata.labels?.[ownLabels.machine];
      const trouble = troubles.get(spec?.nodeName ?? '');
      const isEnding = metadata.deletionTimestamp !== undefined && !needsForcedDeletion(trouble) && !isDeletionIdle(trouble);
      if (base === undefined || isEnding) continue;
      const given = textEntries(parseJson(metadata.annotations?.[ownAnnotations.tags] ?? ''));
      found.set(base, { id: machineIdOf({ context: this.context, namespace, base }), tags: given });
    }
    return [...found.values()];
  }

  async statuses(refs: readonly MachineRef[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, MachineSight>> {
    const [{ namespace } = { namespace: '' }] = refs;
    const bases = refs.map(({ base }) => base);
    const known = await this.currentPods(namespace, bases, signal);
    const all = [...known.values()].flat();
    const troubles = await this.#troubles(all, signal);
    const isWidespread = troubles === undefined && areMostNodesCutOff(all);
    const statuses = await Promise.all(
      bases.map(async (base) => {
        const pods = known.get(base) ?? [];
        const sights = (await this.#sights(namespace, base, pods, troubles, signal)).map((sight) => ({
          ...sight,
          areMostCutOff: isWidespread,
        }));
        const status = machineStatus(sights);
        const sight = { status, hasPods: pods.length > 0, isWaitingForRoom: isWaitingForRoom(sights), patienceSeconds: patienceOf(pods) };
        return [base, sight] as const;
      }),
    );
    return new Map(statuses);
  }

  async troubles(pods: readonly Pod[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, NodeTrouble>> {
    return (await this.#troubles(pods, signal)) ?? new Map();
  }

  #troubles(pods: readonly Pod[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, NodeTrouble> | undefined> {
    const names = new Set(pods.flatMap(({ spec }) => spec?.nodeName ?? []));
    if (names.size === 0) return Promise.resolve(new Map());
    return this.#health.troubles(this.api, names, this.#watches.nodes(this.context), signal);
  }

  async #sights(
    namespace: string,
    base: string,
    pods: readonly Pod[],
    troubles: ReadonlyMap<string, NodeTrouble> | undefined,
    signal: AbortSignal | undefined,
  ): Promise<readonly PodSight[]> {
    const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    return Promise.all(
      podNames(base).map(async (name): Promise<PodSight> => {
        const pod = byName.get(name);
        const events = needsEvents(pod) ? await this.#eventsOf(namespace, name, pod, signal) : [];
        return { name, pod, events, trouble: troubles?.get(pod?.spec?.nodeName ?? ''), areNodesHidden: troubles === undefined };
      }),
    );
  }

  async #eventsOf(namespace: string, name: string, pod: Pod | undefined, signal: AbortSignal | undefined): Promise<readonly PodEvent[]> {
    const id = `${namespace}/${name}`;
    const now = this.#clock.monotonic();
    const known = this.#events.get(id);
    const isGoing = pod === undefined || pod.metadata.deletionTimestamp !== undefined;
    const holdsMs = isGoing ? eventsMs : Math.max(eventsMs, this.#events.size * eventsApartMs);
    if (known !== undefined && now - known.at < holdsMs) return known.events;
    const ask = async (): Promise<readonly PodEvent[]> => {
      try {
        const { items } = await this.api.list<PodEvent>(pathOfAll('Event', namespace), {
          fieldSelector: `involvedObject.kind=Pod,involvedObject.name=${name}`,
          signal,
        });
        // An older pod of the same name has events too.
        const own = items.filter(({ involvedObject }) => pod === undefined || involvedObject?.uid === pod.metadata.uid);
        return own.toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1));
      } catch (error) {
        // The status is known without events.
        if (isDenied(error)) return [];
        throw error;
      }
    };
    let events = await ask();
    if (pod !== undefined && isGoing && known === undefined && events.every(({ reason }) => reason === 'Killing' || reason === 'Started')) {
      await this.#clock.sleep(eventDelayMs, signal);
      events = await ask();
    }
    const at = this.#clock.monotonic();
    for (const [other, { at: asked }] of this.#events) if (at - asked > keptEventsMs) this.#events.delete(other);
    this.#events.set(id, { at, events });
    return events;
  }

  async #readSurvey(): Promise<NodeSurvey> {
    try {
      const [nodes, pods] = await Promise.all([
        this.api.list<Node>(pathOfAll('Node'), { keep: countedNode }),
        // Pods without a node, or that have ended, occupy nothing.
        this.api.list<Pod>(pathOfAll('Pod'), {
          fieldSelector: 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed',
          keep: countedPod,
        }),
      ]);
      return {
        nodes: nodeFacts(
          nodes.items,
          pods.items.flatMap((pod) => podLoad(pod) ?? []),
        ),
      };
    } catch (error) {
      if (isDenied(error)) return { hidden: true };
      throw error;
    }
  }
}

/** Maximum wait for room that the pods were created with, s; undefined: unknown. */
export function patienceOf(pods: readonly Pod[]): number | undefined {
  const seconds = Number(pods[0]?.metadata.annotations?.[ownAnnotations.patience]);
  return Number.isFinite(seconds) ? seconds : undefined;
}

function isWhole(base: string, pods: readonly Pod[] = []): boolean {
  return pods.length === podNames(base).length;
}

function timeOf({ lastTimestamp, eventTime, metadata }: PodEvent): string {
  return lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
}
