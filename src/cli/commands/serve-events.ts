import type { CommandContext } from '../context.ts';
import { renderEvent } from '../listing/event-line.ts';
import { serviceNotFound } from '../name-patterns.ts';

interface EventsArgs {
  readonly name: string;
  readonly follow: boolean;
  readonly json: boolean;
}

/** `svc serve events`: prints one line per change, oldest first. */
export async function serveEvents(args: EventsArgs, context: CommandContext): Promise<void> {
  const { ui, connection } = context;
  const api = await connection.existing();
  if (api === undefined) throw serviceNotFound(args.name);
  for await (const event of api.lines('serviceEvents', { params: { name: args.name }, query: { follow: args.follow } })) {
    ui.print(args.json ? JSON.stringify(event) : renderEvent(event, ui));
  }
}
