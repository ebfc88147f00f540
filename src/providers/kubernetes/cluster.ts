import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import type { MachineStatus } from '../provider.ts';
import { isDenied } from './errors.ts';
import type { MachineRef } from './names.ts';
import { ownAnnotations, ownLabels, podNames } from './names.ts';
import { countedNode, countedPod } from './counted.ts';
import { nodeFacts, podLoad, type NodeFacts } from './node-facts.ts';
import { NodeHealth, type NodeLoss } from './node-health.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import type { ClusterEvent, Node } from './objects.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import { isWaitingForRoom, machineStatus, wantsEvents, type PodSight } from './pod-status.ts';
import { byMachine, type PodsByMachine, type PodWatches } from './pod-watches.ts';

/** Nodes and what is free of them; `hidden` where the user may not read them. */
export type NodeSurvey = { readonly nodes: readonly NodeFacts[] } | { readonly hidden: true };

/** A machine as its cluster shows it. */
export interface MachineSight {
  readonly status: MachineStatus;
  /** Whether its cluster has a pod of it, in whatever state. */
  readonly isThere: boolean;
  /** Whether it boots and has no node yet. */
  readonly isWaitingForRoom: boolean;
  /** How long it may wait for room, s, by what it was made with; undefined where that is not known. */
  readonly patienceSeconds: number | undefined;
}

/** What a survey found holds for so long, ms: choices of a task ask one after the other. */
const surveyMs = 2_000;
/** What events said of a pod holds for so long, ms: a machine that boots is looked at twice a second. */
const eventsMs = 1_500;
/** Of many pods that boot, one is asked about each so many ms: an API server goes through all events of a namespace to find those of one. */
const eventsApartMs = 50;
/** Of pods that nobody asks about any more they are forgotten after so long, ms. */
const keptEventsMs = 60_000;
/** A pod that goes is told of by an event that may come a little after. */
const eventDelayMs = 300;
/** So many machines are named in one question; beyond, all of the namespace are asked for. */
const namedAtOnce = 40;

/** One context: what its cluster says of nodes and of our pods. */
export class Cluster {
  readonly context: string;
  readonly api: KubeApi;
  readonly #clock: Clock;
  readonly #watches: Pick<PodWatches, 'pods' | 'nodes'>;
  readonly #health: NodeHealth;
  #survey: { readonly at: number; readonly result: Promise<NodeSurvey> } | undefined;
  readonly #events = new Map<string, { readonly at: number; readonly events: readonly ClusterEvent[] }>();

  constructor(api: KubeApi, clock: Clock, watches: Pick<PodWatches, 'pods' | 'nodes'>) {
    this.context = api.context;
    this.api = api;
    this.#clock = clock;
    this.#watches = watches;
    this.#health = new NodeHealth(clock);
  }

  /** What nodes have free now, as of two seconds ago at most. */
  survey(signal: AbortSignal | undefined): Promise<NodeSurvey> {
    const now = this.#clock.monotonic();
    if (this.#survey === undefined || now - this.#survey.at >= surveyMs) {
      // Others may wait for it as well: it goes on when who asked first gives up.
      const survey = { at: now, result: this.#look() };
      this.#survey = survey;
      survey.result.catch(() => {
        if (this.#survey === survey) this.#survey = undefined;
      });
    }
    return unlessAborted(this.#survey.result, signal);
  }

  /** Something was made or removed: what was seen counts no more. */
  changed(): void {
    this.#survey = undefined;
  }

  /** The pods of machines of one namespace, by the bases of their names. */
  async pods(namespace: string, bases: readonly string[], signal: AbortSignal | undefined): Promise<PodsByMachine> {
    const labelSelector = bases.length <= namedAtOnce ? `${ownLabels.machine} in (${bases.join(',')})` : ownLabels.machine;
    const { items } = await this.api.list<Pod>(pathOfAll('Pod', namespace), { labelSelector, signal });
    return byMachine(items);
  }

  /** How machines of one namespace are, by the bases of their names. */
  async statuses(refs: readonly MachineRef[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, MachineSight>> {
    const [{ namespace } = { namespace: '' }] = refs;
    const bases = refs.map(({ base }) => base);
    const watched = this.#watches.pods(this.context, namespace);
    const known = new Map(bases.flatMap((base) => (isWhole(base, watched?.get(base)) ? [[base, watched?.get(base) ?? []] as const] : [])));
    // What is not there, or not all of it, may be too new to have been told of.
    const unknown = bases.filter((base) => !known.has(base));
    if (unknown.length > 0) for (const [base, pods] of await this.pods(namespace, unknown, signal)) known.set(base, pods);
    const losses = await this.#losses([...known.values()].flat(), signal);
    const statuses = await Promise.all(
      bases.map(async (base) => {
        const pods = known.get(base) ?? [];
        const sights = await this.#sights(namespace, base, pods, losses, signal);
        const status = machineStatus(sights);
        const sight = { status, isThere: pods.length > 0, isWaitingForRoom: isWaitingForRoom(sights), patienceSeconds: patienceOf(pods) };
        return [base, sight] as const;
      }),
    );
    return new Map(statuses);
  }

  /** Which nodes that pods are on are lost. */
  async losses(pods: readonly Pod[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, NodeLoss>> {
    return (await this.#losses(pods, signal)) ?? new Map();
  }

  #losses(pods: readonly Pod[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, NodeLoss> | undefined> {
    const names = new Set(pods.flatMap(({ spec }) => spec?.nodeName ?? []));
    if (names.size === 0) return Promise.resolve(new Map());
    return this.#health.losses(this.api, names, this.#watches.nodes(this.context), signal);
  }

  async #sights(
    namespace: string,
    base: string,
    pods: readonly Pod[],
    losses: ReadonlyMap<string, NodeLoss> | undefined,
    signal: AbortSignal | undefined,
  ): Promise<readonly PodSight[]> {
    const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    return Promise.all(
      podNames(base).map(async (name): Promise<PodSight> => {
        const pod = byName.get(name);
        const events = wantsEvents(pod) ? await this.#eventsOf(namespace, name, pod, signal) : [];
        return { name, pod, events, lostNode: losses?.get(pod?.spec?.nodeName ?? ''), areNodesHidden: losses === undefined };
      }),
    );
  }

  async #eventsOf(
    namespace: string,
    name: string,
    pod: Pod | undefined,
    signal: AbortSignal | undefined,
  ): Promise<readonly ClusterEvent[]> {
    const id = `${namespace}/${name}`;
    const now = this.#clock.monotonic();
    const known = this.#events.get(id);
    const isGoing = pod === undefined || pod.metadata.deletionTimestamp !== undefined;
    const holdsMs = isGoing ? eventsMs : Math.max(eventsMs, this.#events.size * eventsApartMs);
    if (known !== undefined && now - known.at < holdsMs) return known.events;
    const ask = async (): Promise<readonly ClusterEvent[]> => {
      try {
        const { items } = await this.api.list<ClusterEvent>(pathOfAll('Event', namespace), {
          fieldSelector: `involvedObject.kind=Pod,involvedObject.name=${name}`,
          signal,
        });
        // An older pod of the same name has events as well.
        const own = items.filter(({ involvedObject }) => pod === undefined || involvedObject?.uid === pod.metadata.uid);
        return own.toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1));
      } catch (error) {
        // They only explain.
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

  async #look(): Promise<NodeSurvey> {
    try {
      const [nodes, pods] = await Promise.all([
        this.api.list<Node>(pathOfAll('Node'), { keep: countedNode }),
        // Those that have ended, or wait, take nothing.
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

function patienceOf(pods: readonly Pod[]): number | undefined {
  const seconds = Number(pods[0]?.metadata.annotations?.[ownAnnotations.patience]);
  return Number.isFinite(seconds) ? seconds : undefined;
}

function isWhole(base: string, pods: readonly Pod[] = []): boolean {
  return pods.length === podNames(base).length;
}

function timeOf({ lastTimestamp, eventTime, metadata }: ClusterEvent): string {
  return lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
}
