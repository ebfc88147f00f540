import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../context.ts';
import { parseId, serviceNotFound } from '../name-patterns.ts';

interface TerminateReplicaArgs {
  readonly name: string;
  readonly id: string;
  readonly purge: boolean;
  readonly yes: boolean;
  readonly json: boolean;
}

/** `svc serve terminate-replica`: drains and terminates one replica. The service replaces it. */
export async function serveTerminateReplica(args: TerminateReplicaArgs, context: CommandContext): Promise<void> {
  const { ui, connection } = context;
  const id = parseId(args.id, 'replica');
  const api = await connection.existing();
  if (api === undefined) throw serviceNotFound(args.name);
  const question = `Terminate replica ${id} of service '${args.name}'?`;
  if (!(await ui.confirm(question, args.yes))) throw new SvcError('SVC_ABORTED', 'Nothing was terminated.');
  const reply = await api.call('terminateReplica', { params: { name: args.name, id }, query: { purge: args.purge } });
  if (args.json) ui.json(reply);
  else ui.say(`Replica ${id} of service '${args.name}' is terminating; a new one takes its place.`);
}
