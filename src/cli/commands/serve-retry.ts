import type { CommandContext } from '../context.ts';
import { serviceNotFound } from '../name-patterns.ts';

interface RetryArgs {
  readonly name: string;
  readonly json: boolean;
}

/** `svc serve retry`: ends the refusals of a service, so that it asks its providers again at once. */
export async function serveRetry({ name, json }: RetryArgs, { ui, connection }: CommandContext): Promise<void> {
  const api = await connection.existing();
  if (api === undefined) throw serviceNotFound(name);
  const reply = await api.call('retryService', { params: { name } });
  if (json) ui.json(reply);
  else {
    ui.say(`Service '${name}' tries again now: ${endedText(reply.refusals)}. See: svc serve status ${name}`);
  }
}

function endedText(refusals: number): string {
  if (refusals === 0) return 'no refusal was in force';
  return refusals === 1 ? '1 refusal was ended' : `${refusals} refusals were ended`;
}
