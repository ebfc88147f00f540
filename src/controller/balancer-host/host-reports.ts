import type { BalancerHostMember, HostCommand } from '../../domain/balancer-host.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { HostGroup } from './host-group.ts';
import { mergeLogs } from './merge-logs.ts';
import { mergeMetrics } from './merge-metrics.ts';

/** Which lines are wanted. */
export interface LogWish {
  readonly tail: number | undefined;
  readonly follow: boolean;
}

/** What all balancers of a service have logged, each line with its balancer's name. Throws SVC_ENDPOINT_DOWN when none of them answers. */
export async function* hostedLogs(
  hosts: HostGroup,
  service: string,
  key: string,
  wish: LogWish,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const command = { type: 'log', key, tail: wish.tail ?? null, follow: wish.follow } as const;
  const answers = await askAll(hosts, service, command, signal);
  yield* mergeLogs(answers.map(({ member, text }) => ({ member: member.name, pieces: text })));
}

/** What all balancers of a service count, each with its name as a label. Throws SVC_ENDPOINT_DOWN when none of them answers. */
export async function hostedMetrics(hosts: HostGroup, service: string, key: string, signal: AbortSignal): Promise<string> {
  const answers = await askAll(hosts, service, { type: 'metrics', key }, signal);
  return mergeMetrics(await Promise.all(answers.map(async ({ member, text }) => ({ member: member.name, text: await wholeText(text) }))));
}

interface Answer {
  readonly member: BalancerHostMember;
  readonly text: AsyncIterable<Buffer>;
}

/** The answers of those that answer. */
async function askAll(hosts: HostGroup, service: string, command: HostCommand, signal: AbortSignal): Promise<readonly Answer[]> {
  const answers = await Promise.allSettled(
    hosts.members.map(async (member): Promise<Answer> => ({ member, text: await hosts.ask(member, command, signal) })),
  );
  const good = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  if (good.length > 0) return good;
  const why = answers.flatMap((answer) => (answer.status === 'rejected' ? [messageOf(answer.reason)] : []))[0] ?? 'there is none';
  throw new SvcError('SVC_ENDPOINT_DOWN', `No balancer that serves the endpoint of '${service}' answers: ${why}`, {
    hint: 'They are looked for all the time; run: svc serve status',
  });
}

async function wholeText(pieces: AsyncIterable<Buffer>): Promise<string> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString('utf8');
}
