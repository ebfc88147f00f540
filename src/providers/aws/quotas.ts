import type { Clock } from '../../shared/clock.ts';
import { withLateness } from '../../shared/deadline.ts';
import type { AwsClients } from './client.ts';

/** Of running vCPUs: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html */
const quotas = [
  { name: 'standard', code: 'L-1216C47A' },
  { name: 'G', code: 'L-DB2E81BA' },
  { name: 'P', code: 'L-417A185B' },
  { name: 'G on spot', code: 'L-3819A6DF' },
  { name: 'P on spot', code: 'L-7212CCBC' },
] as const;

/** A quota stays valid for later checks for this time, ms. */
const rememberedMs = 600_000;

/** A check waits at most `waitMs` for quotas, because they are only displayed. A late answer serves the next check. */
export class QuotaLines {
  readonly #clock: Clock;
  readonly #asked = new Map<string, { readonly at: number; readonly line: Promise<string | undefined> }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns "not known yet" after `waitMs`. `account` is part of the cache key. Throws only when cancelled. */
  async find(
    clients: Pick<AwsClients, 'quota'>,
    { account, region, waitMs }: { readonly account: string; readonly region: string; readonly waitMs: number },
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    const key = JSON.stringify([account, region]);
    const now = this.#clock.monotonic();
    const known = this.#asked.get(key);
    const asked =
      known !== undefined && now - known.at < rememberedMs
        ? known
        : { at: now, line: quotaLine(clients, region, signal).catch(() => undefined) };
    this.#asked.set(key, asked);
    const answer = async (): Promise<{ readonly line: string | undefined }> => ({ line: await asked.line });
    const found = await withLateness(this.#clock, waitMs, (late) => Promise.race([answer(), late]), signal);
    if (found === undefined) return `not known yet: Service Quotas did not answer within ${waitMs / 1_000} s`;
    if (this.#asked.get(key) === asked) this.#asked.delete(key);
    return found.line;
  }
}

/** `64 standard, 0 G, 0 P`. New accounts have 0 for GPUs. Undefined when the credentials may not read quotas. */
async function quotaLine(clients: Pick<AwsClients, 'quota'>, region: string, signal: AbortSignal | undefined): Promise<string | undefined> {
  const answers = await Promise.allSettled(quotas.map(({ code }) => clients.quota(region, code, signal)));
  signal?.throwIfAborted();
  const parts = answers.flatMap((answer, index) =>
    answer.status === 'fulfilled' && answer.value !== undefined ? [`${answer.value} ${quotas[index]?.name}`] : [],
  );
  return parts.length === 0 ? undefined : parts.join(', ');
}
