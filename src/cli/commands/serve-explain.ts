import type { RouteReply } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import { wrapText } from '../command-text.ts';
import type { CommandContext } from '../context.ts';
import { oneLine } from '../listing/display-text.ts';
import { renderEvent } from '../listing/event-line.ts';
import { parseId, serviceNotFound } from '../name-patterns.ts';
import { renderPlan } from '../listing/plan-listing.ts';

interface ExplainArgs {
  readonly name: string;
  readonly id: string | undefined;
  readonly all: boolean;
  readonly json: boolean;
}

/** Timeout, ms: a plan asks the providers for their offers. */
const explainTimeoutMs = 60_000;

/** `svc serve explain`: how machines were found, and which offers there are for one more replica. */
export async function serveExplain({ name, id, all, json }: ExplainArgs, context: CommandContext): Promise<void> {
  const { ui, connection } = context;
  const requestedId = id === undefined ? undefined : parseId(id, 'replica');
  const api = await connection.existing();
  if (api === undefined) throw serviceNotFound(name);
  const query = { all, ...(requestedId !== undefined && { id: requestedId }) };
  const reply = await api.call('explainService', { params: { name }, query, timeoutMs: explainTimeoutMs });
  if (requestedId !== undefined && reply.replicas.length === 0)
    throw new SvcError('SVC_REPLICA_NOT_FOUND', `Service '${name}' has no replica ${requestedId}.`, {
      hint: `Run: svc serve status ${name}`,
    });
  if (json) ui.json(reply);
  else for (const line of render(reply, all, context)) ui.print(line);
}

function render({ replicas, plan }: RouteReply<'explainService'>, all: boolean, { ui }: CommandContext): readonly string[] {
  const searches = replicas.flatMap(({ id, status, reason, reachedBy, steps }) => [
    ui.paint('strong', `Replica ${id} (${status})`),
    ...(reachedBy === null ? [] : [wrapText(`  Requests reach it by: ${oneLine(reachedBy)}`, ui.outWidth)]),
    ...(reason === null ? [] : [wrapText(`  ${oneLine(reason)}`, ui.outWidth)]),
    ...steps.map((step) => renderEvent(step, ui, '  ')),
    '',
  ]);
  if (plan === null) return searches;
  return [...searches, ui.paint('strong', 'What could be had for one more replica now'), ...renderPlan(plan, { all, width: ui.outWidth })];
}
