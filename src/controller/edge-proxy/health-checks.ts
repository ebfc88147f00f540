import { connect } from 'node:net';
import { edgeProxyPodLabels, type EdgeProxyMember } from '../../domain/edge-proxy/edge-proxy.ts';
import { activeProxies, decideLabels, type ProxyLabels, type SeenProxy } from '../../domain/edge-proxy/edge-proxy-health.ts';
import { podPath } from '../../kubernetes/paths.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Loop } from '../../shared/loop.ts';
import { isAlone, isServing, membersOf, type BalancerPod } from './pods.ts';

/** Probe interval per edge proxy, ms. A failure needs three probes: requests are redirected within a second. */
const checkEveryMs = 250;
/** An edge proxy without an answer for this long counts as silent, ms. */
const answerMs = 500;
/** Bytes read of an answer's first line, at most: the edge proxy may be compromised. */
const maxAnswerBytes = 1_024;

interface HealthChecksDeps {
  readonly api: Pick<KubeApi, 'merge'>;
  readonly namespace: string;
  readonly pods: () => readonly BalancerPod[];
  readonly port: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly check?: (member: EdgeProxyMember) => Promise<CheckAnswer>;
}

type CheckAnswer = 'ready' | 'not-ready' | 'silent';

/**
 * Puts the edge proxies that can serve into the Service, whatever Kubernetes knows of their nodes. Edge proxies do not
 * label themselves: the right to change a pod's labels includes changing its image, and every client reaches the edge
 * proxies.
 */
export class HealthChecks implements Loop {
  readonly name = 'health-checks';
  readonly everyMs = checkEveryMs;
  readonly #deps: HealthChecksDeps;
  readonly #failures = new Map<string, number>();
  readonly #answers = new Map<string, CheckAnswer>();
  readonly #outSince = new Map<string, number>();
  #idleSince: number | undefined;

  constructor(deps: HealthChecksDeps) {
    this.#deps = deps;
  }

  async tick(): Promise<void> {
    const { pods, port, clock } = this.#deps;
    const check = this.#deps.check ?? ((member) => askReadiness(member, clock));
    const living = pods();
    const members = new Map(membersOf(living, port).map((member) => [member.name, member]));
    await Promise.all(
      living.map(async ({ metadata: { name } }) => {
        // A pod without an address, or whose containers have ended, does not answer.
        const member = members.get(name);
        const answer = member === undefined ? 'silent' : await check(member);
        this.#answers.set(name, answer);
        this.#failures.set(name, answer === 'ready' ? 0 : (this.#failures.get(name) ?? 0) + 1);
      }),
    );
    const proxies = this.#proxies();
    const now = clock.monotonic();
    this.#idleSince = activeProxies(proxies).length > 0 ? undefined : (this.#idleSince ?? now);
    const changes = decideLabels(proxies, now - (this.#idleSince ?? now));
    await Promise.all(changes.map((change) => this.#apply(change)));
  }

  #proxies(): readonly SeenProxy[] {
    const { pods, clock } = this.#deps;
    const now = clock.monotonic();
    const living = pods();
    for (const seen of [this.#failures, this.#answers, this.#outSince])
      for (const name of seen.keys()) if (!living.some(({ metadata }) => metadata.name === name)) seen.delete(name);
    return living.map((pod): SeenProxy => {
      const { name, deletionTimestamp } = pod.metadata;
      if (isServing(pod)) this.#outSince.delete(name);
      else if (!this.#outSince.has(name)) this.#outSince.set(name, now);
      return {
        name,
        isServing: isServing(pod),
        isAlone: isAlone(pod),
        isGoing: deletionTimestamp !== undefined,
        // A pod that appeared during the checks is checked in the next pass.
        failures: this.#failures.get(name) ?? 1,
        answers: (this.#answers.get(name) ?? 'silent') !== 'silent',
        outForMs: now - (this.#outSince.get(name) ?? now),
      };
    });
  }

  async #apply({ name, ...change }: ProxyLabels): Promise<void> {
    const { api, namespace, log } = this.#deps;
    const labels = {
      ...(change.isServing !== undefined && { [edgeProxyPodLabels.serving]: String(change.isServing) }),
      ...(change.isAlone !== undefined && { [edgeProxyPodLabels.alone]: String(change.isAlone) }),
    };
    try {
      await api.merge(podPath({ namespace, name }), { metadata: { labels } });
      log.info({ pod: name, ...change }, 'the labels of an edge proxy were changed');
    } catch (error) {
      log.warn({ pod: name, reason: messageOf(error) }, 'the labels of an edge proxy could not be changed; it is tried again');
    }
  }
}

/** Sends a readiness probe. `silent`: no answer within the time limit. */
export function askReadiness({ host, port }: EdgeProxyMember, clock: Clock): Promise<CheckAnswer> {
  const { promise, resolve } = Promise.withResolvers<CheckAnswer>();
  const socket = connect({ host, port });
  const cancel = clock.after(answerMs, () => resolve('silent'));
  let answer = '';
  socket.on('connect', () => socket.write(`GET /readyz HTTP/1.1\r\nHost: ${host}\r\n\r\n`));
  socket.on('data', (bytes) => {
    answer += bytes.toString('latin1');
    if (answer.includes('\r\n')) resolve(meaningOf(answer));
    else if (answer.length > maxAnswerBytes) resolve('silent');
  });
  socket.on('error', () => resolve('silent'));
  socket.on('close', () => resolve('silent'));
  return promise.finally(() => {
    cancel();
    socket.destroy();
  });
}

function meaningOf(answer: string): CheckAnswer {
  if (answer.startsWith('HTTP/1.1 200 ')) return 'ready';
  return answer.startsWith('HTTP/1.1 503 ') ? 'not-ready' : 'silent';
}
