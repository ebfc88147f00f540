import { connect } from 'node:net';
import { balancerPodLabels, type BalancerHostMember } from '../../domain/balancer-host.ts';
import { decidePeers, type OwnState, type PeerChange } from '../../domain/balancer-peers.ts';
import { podPath } from '../../kubernetes/paths.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Loop } from '../../shared/loop.ts';
import { isServing, membersOf, type BalancerPod } from './pods.ts';

/** How often each looks at the others, ms; with three looks, requests go elsewhere within a second. */
const lookEveryMs = 250;
/** A peer that does not answer within so long, ms, did not answer. */
const answerMs = 500;

/** What watching over one another needs. */
export interface PeersDeps {
  readonly api: Pick<KubeApi, 'merge'>;
  readonly namespace: string;
  /** Of the pods of balancer hosts, as they are now. */
  readonly pods: () => readonly BalancerPod[];
  /** Of the own pod. */
  readonly name: string;
  readonly port: number;
  readonly own: () => Pick<OwnState, 'isReady' | 'isInformed' | 'isEnding'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether a host answers. */
  readonly isWell?: (member: BalancerHostMember) => Promise<boolean>;
}

/** Balancer hosts of one cluster watch over one another: who is silent gets no more requests, long before the cluster finds that its node is lost. */
export class Peers implements Loop {
  readonly name = 'peers';
  readonly everyMs = lookEveryMs;
  readonly #deps: PeersDeps;
  readonly #failures = new Map<string, number>();
  #outSince: number | undefined;

  constructor(deps: PeersDeps) {
    this.#deps = deps;
  }

  async tick(): Promise<void> {
    const { pods, name, port, clock } = this.#deps;
    const isWell = this.#deps.isWell ?? ((member) => answersProbe(member, clock));
    const living = pods();
    const others = membersOf(living, port).filter((member) => member.name !== name);
    await Promise.all(
      others.map(async (member) => {
        this.#failures.set(member.name, (await isWell(member)) ? 0 : (this.#failures.get(member.name) ?? 0) + 1);
      }),
    );
    for (const known of this.#failures.keys()) if (!living.some(({ metadata }) => metadata.name === known)) this.#failures.delete(known);
    await this.change();
  }

  /** Changes the labels that are to be changed; also between two looks, when something about this host itself changed. */
  async change(): Promise<void> {
    const { pods, name, own, clock } = this.#deps;
    const living = pods();
    const self = living.find(({ metadata }) => metadata.name === name);
    if (self === undefined) return;
    const peers = living
      .filter((pod) => pod !== self)
      .map((pod) => ({ name: pod.metadata.name, isServing: isServing(pod), failures: this.#failures.get(pod.metadata.name) ?? 0 }));
    const now = clock.monotonic();
    this.#outSince = isServing(self) ? undefined : (this.#outSince ?? now);
    const outForMs = now - (this.#outSince ?? now);
    const changes = decidePeers({ name, isServing: isServing(self), outForMs, ...own() }, peers);
    await Promise.all(changes.map((change) => this.#apply(change)));
  }

  async #apply({ name, serving }: PeerChange): Promise<void> {
    const { api, namespace, log } = this.#deps;
    const path = podPath({ namespace, name });
    try {
      await api.merge(path, { metadata: { labels: { [balancerPodLabels.serving]: String(serving) } } });
      log.info({ pod: name, serving }, serving ? 'requests are led to this balancer host' : 'requests are led away from a balancer host');
    } catch (error) {
      log.warn({ pod: name, reason: messageOf(error) }, 'a label could not be changed; it is tried again');
    }
  }
}

/** Whether a balancer host answers its probe in time. */
export function answersProbe({ host, port }: BalancerHostMember, clock: Clock): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port });
  const cancel = clock.after(answerMs, () => resolve(false));
  let answer = '';
  socket.on('connect', () => socket.write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`));
  socket.on('data', (bytes) => {
    answer += bytes.toString('latin1');
    if (answer.includes('\r\n')) resolve(answer.startsWith('HTTP/1.1 200 '));
  });
  socket.on('error', () => resolve(false));
  socket.on('close', () => resolve(false));
  return promise.finally(() => {
    cancel();
    socket.destroy();
  });
}
