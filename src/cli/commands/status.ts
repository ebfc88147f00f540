import type { ClusterView, RouteReply } from '../../api/contract.ts';
import { controllerName, renderClusters } from '../listing/cluster-listing.ts';
import type { CommandContext } from '../context.ts';
import { diskLines, leftoverLines } from '../listing/status-lines.ts';
import { clusterNotFound, pickByName } from '../name-patterns.ts';
import { renderServices, type ListingOptions } from '../listing/service-listing.ts';

interface StatusArgs {
  readonly names: readonly string[];
  readonly refresh: boolean;
  readonly json: boolean;
}

/** `svc status`: lists clusters with the controller among them, then services; or only the named clusters. */
export async function status(args: StatusArgs, context: CommandContext): Promise<void> {
  const { ui, connection } = context;
  const api = args.refresh ? await connection.client() : await connection.existing();
  const health = await api?.call('health');
  const clusters = (await api?.call('listClusters'))?.clusters ?? [];
  if (args.names.length > 0) {
    showNamed(args, health, clusters, context);
    return;
  }
  const { services = [], leftovers = [], disk } = (await api?.call('listServices')) ?? {};
  if (args.json) {
    ui.json({ controller: health ?? null, clusters, services, ...(leftovers.length > 0 && { leftovers }), disk });
    return;
  }
  const options = listingOptions(context);
  ui.print(ui.paint('strong', 'Clusters'));
  for (const line of renderClusters(health, clusters, options)) ui.print(line);
  ui.print('');
  ui.print(ui.paint('strong', 'Services'));
  for (const line of [...renderServices(services, options), ...leftoverLines(leftovers, options), ...diskLines(disk, options)])
    ui.print(line);
}

const listingOptions = ({ ui, clock }: CommandContext): ListingOptions => ({
  width: ui.outWidth,
  now: clock.now(),
  verbose: false,
  paint: ui.paint,
  asTyped: (text) => ui.asTyped(text),
});

/** Existing clusters are shown even when another name is unknown. */
function showNamed(
  { names, json }: StatusArgs,
  health: RouteReply<'health'> | undefined,
  clusters: readonly ClusterView[],
  context: CommandContext,
): void {
  const { ui } = context;
  const controller = names.includes(controllerName) ? health : undefined;
  const others = names.filter((name) => name !== controllerName);
  const { found, missing } = others.length === 0 ? { found: [], missing: [] } : pickByName(clusters, others);
  if (controller !== undefined || found.length > 0 || missing.length === 0) {
    if (json) ui.json({ controller: controller ?? null, clusters: found });
    else for (const line of renderClusters(controller, found, listingOptions(context))) ui.print(line);
  }
  if (missing[0] !== undefined) throw clusterNotFound(missing[0], clusters);
}
