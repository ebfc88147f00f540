import { SvcError } from '../../shared/errors.ts';
import { accessTitles, isAccessLine, renderAccessLine } from '../listing/access-line.ts';
import type { ApiClient } from '../../api/client.ts';
import type { CommandContext } from '../context.ts';
import { parseId, serviceNotFound } from '../name-patterns.ts';
import type { Ui } from '../ui.ts';

interface LogsArgs {
  readonly name: string;
  readonly id: string | undefined;
  readonly controller: boolean;
  readonly loadBalancer: boolean;
  readonly follow: boolean | undefined;
  readonly tail: number | undefined;
  readonly json: boolean;
}

/** `svc serve logs`: the log of a replica, of the service's controller or of its load balancer. */
export async function serveLogs(args: LogsArgs, context: CommandContext): Promise<void> {
  const targets = [args.id !== undefined, args.controller, args.loadBalancer].filter(Boolean);
  if (targets.length > 1) {
    throw new SvcError('SVC_USAGE', 'Only one log can be shown at a time.', {
      hint: 'Give a replica id, --controller or --load-balancer.',
    });
  }
  const api = await context.connection.existing();
  if (api === undefined) throw serviceNotFound(args.name);
  const target = args.controller ? 'controller' : args.loadBalancer ? 'load-balancer' : 'replica';
  const id = target === 'replica' ? await replicaId(args, api) : undefined;
  const query = {
    target,
    follow: args.follow ?? true,
    ...(id === undefined ? {} : { id }),
    ...(args.tail === undefined ? {} : { tail: args.tail }),
  } as const;
  const chunks = api.text('serviceLogs', { params: { name: args.name }, query });
  if (args.loadBalancer) await showLoadBalancer(textLines(chunks), args.json, context.ui);
  else for await (const chunk of chunks) context.ui.write(chunk);
}

/** Shows requests and the messages of the balancer's process. With --json it prints only requests, for programs. */
async function showLoadBalancer(lines: AsyncIterable<string>, json: boolean, ui: Ui): Promise<void> {
  if (ui.outIsTerminal && !json) ui.print(ui.paint('strong', accessTitles));
  for await (const line of lines) {
    if (!json) ui.print(renderAccessLine(line, ui));
    else if (isAccessLine(line)) ui.print(line);
  }
}

/** The requested replica, or the newest. */
async function replicaId(args: LogsArgs, api: ApiClient): Promise<number> {
  if (args.id !== undefined) return parseId(args.id, 'replica');
  const service = await api.call('getService', { params: { name: args.name } });
  const newest = service.replicas.at(-1);
  if (newest === undefined) {
    throw new SvcError('SVC_REPLICA_NOT_FOUND', `The service '${args.name}' has no replica yet.`, {
      hint: `Run: svc serve logs ${args.name} --controller`,
    });
  }
  return newest.id;
}

/** Lines, without their ends, from chunks of bytes. A last line without an end counts. */
export async function* textLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  rest += decoder.decode();
  if (rest !== '') yield rest;
}
