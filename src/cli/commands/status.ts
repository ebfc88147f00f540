import type { ClusterView, RouteReply, ServiceView, DiskView, LeftoverView } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../command.ts';
import { controllerName, portLines, renderClusters } from '../listing/cluster-listing.ts';
import { renderServices, type ListingOptions, diskLines, leftoverLines } from '../listing/service-listing.ts';
import { clusterNotFound, pickByName, serviceNotFound } from '../name-patterns.ts';

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
  for (const line of [...renderClusters(health, clusters, options), ...portLines(health, clusters)]) ui.print(line);
  ui.print('');
  ui.print(ui.paint('strong', 'Services'));
  for (const line of serviceLines(services, leftovers, disk, options)) ui.print(line);
}

const listingOptions = ({ ui, clock }: CommandContext, verbose = false): ListingOptions => ({
  width: ui.outWidth,
  now: clock.now(),
  verbose,
  paint: ui.paint,
  asTyped: (text) => ui.asTyped(text),
});

/** Services, and below them what both commands warn about. */
const serviceLines = (
  services: readonly ServiceView[],
  leftovers: readonly LeftoverView[],
  disk: DiskView | undefined,
  options: ListingOptions,
): readonly string[] => [...renderServices(services, options), ...leftoverLines(leftovers, options), ...diskLines(disk, options)];

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
    else for (const line of [...renderClusters(controller, found, listingOptions(context)), ...portLines(health, found)]) ui.print(line);
  }
  if (missing[0] !== undefined) throw clusterNotFound(missing[0], clusters);
}

interface ServeStatusArgs {
  readonly names: readonly string[];
  readonly endpoint: string | true | undefined;
  readonly watch: boolean;
  readonly verbose: boolean;
  readonly json: boolean;
}

/** `svc serve status`: tables of services and replicas, their JSON, or one endpoint. */
export async function serveStatus(args: ServeStatusArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  if (args.endpoint !== undefined) {
    ui.print(await endpointOf(args, context));
    return;
  }
  const render = (services: readonly ServiceView[], { leftovers = [], disk }: RouteReply<'listServices'>): readonly string[] => {
    // Omitted when empty, as in nearly all cases: the JSON stays as before.
    if (args.json)
      return [JSON.stringify({ services, ...(leftovers.length > 0 && { leftovers }), disk }, undefined, args.watch ? undefined : 2)];
    const options = listingOptions(context, args.verbose);
    return serviceLines(services, leftovers, disk, options);
  };
  if (args.watch) {
    const listed = async (): Promise<readonly string[]> => {
      const all = await listAll(context);
      return render(pickByName(all.services, args.names).found, all);
    };
    await watch(listed, context);
  } else {
    const all = await listAll(context);
    const { found, missing } = pickByName(all.services, args.names);
    // Existing services are shown even when another name is unknown.
    if (found.length > 0 || missing.length === 0) for (const line of render(found, all)) ui.print(line);
    if (missing[0] !== undefined) throw serviceNotFound(missing[0], all.services);
  }
}

async function endpointOf(args: ServeStatusArgs, context: CommandContext): Promise<string> {
  const names = args.endpoint === true ? args.names : [args.endpoint ?? '', ...args.names];
  const [name] = names;
  if (name === undefined || names.length > 1) {
    throw new SvcError('SVC_USAGE', 'One service is needed to print its endpoint.', { hint: 'Run: svc serve status --endpoint NAME' });
  }
  const { services } = await listAll(context);
  const service = services.find((each) => each.name === name);
  if (service === undefined) throw serviceNotFound(name, services);
  return service.endpoint;
}

async function listAll({ connection }: CommandContext): Promise<RouteReply<'listServices'>> {
  const api = await connection.existing();
  return api === undefined ? { services: [] } : api.call('listServices');
}

const everyMs = 1_000;

const eraseBelow = '\u001B[0J';

/** Shows lines until interrupted. A terminal shows the newest, cut to its height; other outputs get each change. */
async function watch(read: () => Promise<readonly string[]>, context: CommandContext): Promise<void> {
  const { ui, clock, signal } = context;
  let drawn = 0;
  let before = '';
  while (!signal.aborted) {
    const lines = await read();
    if (ui.outIsTerminal) {
      // One row stays free for the cursor: after the screen scrolls, the lines could not be overwritten.
      const shown = lines.slice(0, Math.max(1, ui.outRows - 1));
      const up = drawn === 0 ? '' : `\u001B[${drawn}A`;
      ui.write(`${up}\r${eraseBelow}${shown.join('\n')}\n`);
      drawn = shown.length;
    } else if (lines.join('\n') !== before) {
      before = lines.join('\n');
      ui.write(`${before}\n`);
    }
    await clock.sleep(everyMs, signal);
  }
}
