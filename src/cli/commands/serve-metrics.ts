import type { CommandContext } from '../context.ts';
import { serviceNotFound } from '../name-patterns.ts';

interface MetricsArgs {
  readonly name: string;
}

/** `svc serve metrics`: prints the balancer's metrics in the format that Prometheus scrapes. */
export async function serveMetrics(args: MetricsArgs, context: CommandContext): Promise<void> {
  const api = await context.connection.existing();
  if (api === undefined) throw serviceNotFound(args.name);
  for await (const chunk of api.text('serviceMetrics', { params: { name: args.name } })) context.ui.write(chunk);
}
