import { renderClusters } from '../cluster-listing.ts';
import type { CommandContext } from '../context.ts';
import { renderServices } from '../service-listing.ts';

interface StatusArgs {
  readonly refresh: boolean;
  readonly json: boolean;
}

/** `svc status`: clusters with the controller among them, then services. */
export async function status(args: StatusArgs, context: CommandContext): Promise<void> {
  const { ui, connection, clock } = context;
  const api = args.refresh ? await connection.client() : await connection.existing();
  const health = await api?.call('health');
  const clusters = (await api?.call('listClusters'))?.clusters ?? [];
  const services = (await api?.call('listServices'))?.services ?? [];
  if (args.json) {
    ui.json({ controller: health ?? null, clusters, services });
    return;
  }
  const options = { width: ui.outWidth, now: clock.now(), verbose: false, paint: ui.paint };
  ui.print(ui.paint('strong', 'Clusters'));
  for (const line of renderClusters(health, clusters, options)) ui.print(line);
  ui.print('');
  ui.print(ui.paint('strong', 'Services'));
  for (const line of renderServices(services, options)) ui.print(line);
}
