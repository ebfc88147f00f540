import type { EdgeProxyCommand, EdgeProxyMember } from '../../domain/edge-proxy/edge-proxy.ts';
import { SvcError, messageOf } from '../../shared/errors.ts';
import type { EdgeProxyGroup } from './edge-proxy-group.ts';

interface LogQuery {
  readonly tail: number | undefined;
  readonly follow: boolean;
}

/** Logs of a service's balancers, each line with its balancer's name. Throws SVC_ENDPOINT_DOWN if none answers. */
export async function* edgeProxyLogs(
  proxies: EdgeProxyGroup,
  service: string,
  key: string,
  query: LogQuery,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const command = { type: 'log', key, tail: query.tail ?? null, follow: query.follow } as const;
  const answers = await askAll(proxies, service, command, signal);
  yield* mergeLogs(answers.map(({ member, text }) => ({ member: member.name, pieces: text })));
}

/** Metrics of a service's balancers, labelled with their names. Throws SVC_ENDPOINT_DOWN if none answers. */
export async function edgeProxyMetrics(proxies: EdgeProxyGroup, service: string, key: string, signal: AbortSignal): Promise<string> {
  const answers = await askAll(proxies, service, { type: 'metrics', key }, signal);
  return mergeMetrics(await Promise.all(answers.map(async ({ member, text }) => ({ member: member.name, text: await wholeText(text) }))));
}

interface Answer {
  readonly member: EdgeProxyMember;
  readonly text: AsyncIterable<Buffer>;
}

async function askAll(
  proxies: EdgeProxyGroup,
  service: string,
  command: EdgeProxyCommand,
  signal: AbortSignal,
): Promise<readonly Answer[]> {
  const answers = await Promise.allSettled(
    proxies.members.map(async (member): Promise<Answer> => ({ member, text: await proxies.ask(member, command, signal) })),
  );
  const good = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  if (good.length > 0) return good;
  const why = answers.flatMap((answer) => (answer.status === 'rejected' ? [messageOf(answer.reason)] : []))[0] ?? 'there is none';
  throw new SvcError('SVC_ENDPOINT_DOWN', `No balancer that serves the endpoint of '${service}' answers: ${why}`, {
    hint: 'The controller keeps searching for them; run: svc serve status',
  });
}

async function wholeText(pieces: AsyncIterable<Buffer>): Promise<string> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString('utf8');
}

interface MemberLog {
  readonly member: string;
  readonly pieces: AsyncIterable<Buffer>;
}

const newline = 10;

/** Merges logs line by line in order of arrival. Prefixes each line with its balancer's name. */
export async function* mergeLogs(logs: readonly MemberLog[]): AsyncGenerator<Buffer> {
  const waiting = new Map<number, Promise<{ readonly index: number; readonly next: IteratorResult<Buffer> }>>();
  const lines = logs.map((log) => memberLines(log));
  const ask = (index: number): void => {
    const one = lines[index];
    if (one !== undefined)
      waiting.set(
        index,
        one.next().then((next) => ({ index, next })),
      );
  };
  for (const index of lines.keys()) ask(index);
  try {
    while (waiting.size > 0) {
      const { index, next } = await Promise.race(waiting.values());
      waiting.delete(index);
      if (next.done === true) continue;
      ask(index);
      yield next.value;
    }
  } finally {
    for (const one of lines) void one.return(undefined).catch(() => undefined);
  }
}

/** Whole lines, as many as arrived at once. A log that breaks off ends with a line that says so. */
async function* memberLines({ member, pieces }: MemberLog): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const piece of pieces) {
      const read = Buffer.concat([rest, piece]);
      const end = read.lastIndexOf(newline) + 1;
      rest = read.subarray(end);
      if (end > 0) yield withName(member, read.toString('utf8', 0, end - 1));
    }
    if (rest.length > 0) yield withName(member, rest.toString('utf8'));
  } catch {
    yield withName(member, '(the log breaks off: this balancer does not answer any more)');
  }
}

function withName(member: string, text: string): Buffer {
  return Buffer.from(
    text
      .split('\n')
      .map((line) => `[${member}] ${line}\n`)
      .join(''),
  );
}

interface MemberMetrics {
  readonly member: string;
  readonly text: string;
}

interface Family {
  readonly head: string[];
  readonly samples: string[];
}

const headPattern = /^# (?:HELP|TYPE) (\S+)/;
const samplePattern = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (.+)$/;

/** Merges metrics into one valid exposition: each family once, each sample with the label `balancer`. Pure. */
export function mergeMetrics(all: readonly MemberMetrics[]): string {
  const families = new Map<string, Family>();
  for (const { member, text } of all) {
    let current: Family = { head: [], samples: [] };
    for (const line of text.split('\n')) {
      const name = headPattern.exec(line)?.[1];
      if (name !== undefined) {
        current = families.get(name) ?? { head: [], samples: [] };
        families.set(name, current);
        if (!current.head.includes(line)) current.head.push(line);
      } else if (line !== '' && !line.startsWith('#')) current.samples.push(labelled(line, member));
    }
  }
  return [...families.values()].flatMap(({ head, samples }) => [...head, ...samples].map((line) => `${line}\n`)).join('');
}

function labelled(sample: string, member: string): string {
  const [, name, labels, value] = samplePattern.exec(sample) ?? [];
  if (name === undefined || value === undefined) return sample;
  const own = `balancer="${member.replaceAll(/[\\"]/g, String.raw`\$&`)}"`;
  return `${name}{${labels === undefined || labels === '' ? own : `${own},${labels}`}} ${value}`;
}
