import type { Remote } from '../../remote/remote.ts';
import type { Clock } from '../../shared/clock.ts';
import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';
import type { MachineId, MachineNotice } from '../provider.ts';

/** Where a machine asks about itself: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html */
const metadata = 'http://169.254.169.254';

/** How often a machine is asked, ms. A recommendation comes before the notice of two minutes, often by much, and nothing hangs on seconds. */
const askEveryMs = 30_000;
const askTimeoutMs = 15_000;

/** A token first, as the machines are made so that nothing is told without; 404, and so no output, while nothing is recommended. */
const script = `
token=$(curl -s -f -m 3 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$1/latest/api/token") || exit 0
curl -s -f -m 3 -H "X-aws-ec2-metadata-token: $token" "$1/latest/meta-data/events/recommendations/rebalance"
exit 0`;

/** What is known of one machine. */
interface Asked {
  readonly at: number;
  readonly notice: MachineNotice | undefined;
}

/**
 * What AWS recommends for spot machines that it may take: only the machines themselves are told. They are asked over SSH, now and then and behind the
 * calls of others: an answer shows in the next look.
 */
export class RebalanceWatch {
  readonly #clock: Clock;
  readonly #base: string;
  readonly #asked = new Map<MachineId, Asked>();
  readonly #asking = new Set<MachineId>();

  /** `base` is replaced by tests. */
  constructor(clock: Clock, base: string = metadata) {
    this.#clock = clock;
    this.#base = base;
  }

  /** What the machine was told as far as is known by now. */
  noticeOf(id: MachineId, remote: () => Pick<Remote, 'exec'>): MachineNotice | undefined {
    const known = this.#asked.get(id);
    const isOld = known === undefined || this.#clock.monotonic() - known.at >= askEveryMs;
    // What was recommended once is not taken back.
    if (isOld && known?.notice === undefined && !this.#asking.has(id)) void this.#ask(id, remote());
    return known?.notice;
  }

  /** It is gone. */
  forget(id: MachineId): void {
    this.#asked.delete(id);
  }

  /** Never throws: a machine that does not answer is asked again later. */
  async #ask(id: MachineId, remote: Pick<Remote, 'exec'>): Promise<void> {
    this.#asking.add(id);
    let notice: MachineNotice | undefined;
    try {
      const { stdout } = await remote.exec(['sh', '-c', script, 'sh', this.#base], { timeoutMs: askTimeoutMs });
      notice = parseNotice(stdout);
    } catch {
      // Whoever works with the machine finds out what is wrong with it.
    }
    this.#asking.delete(id);
    this.#asked.set(id, { at: this.#clock.monotonic(), notice });
  }
}

function parseNotice(text: string): MachineNotice | undefined {
  const value = parseJson(text);
  if (!isObject(value) || typeof value['noticeTime'] !== 'string') return undefined;
  const at = Date.parse(value['noticeTime']);
  return { kind: 'rebalance', at: Number.isNaN(at) ? undefined : at };
}
