import type { ServiceView } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../context.ts';
import { pickByName, serviceNotFound } from '../name-patterns.ts';
import { renderServices } from '../service-listing.ts';
import { watch } from '../watch.ts';

interface StatusArgs {
  readonly names: readonly string[];
  readonly endpoint: string | true | undefined;
  readonly watch: boolean;
  readonly verbose: boolean;
  readonly json: boolean;
}

/** `svc serve status`: tables of services and replicas, their JSON, or one endpoint. */
export async function serveStatus(args: StatusArgs, context: CommandContext): Promise<void> {
  const { ui, clock } = context;
  if (args.endpoint !== undefined) {
    ui.print(await endpointOf(args, context));
    return;
  }
  const render = (services: readonly ServiceView[]): readonly string[] => {
    if (args.json) return [JSON.stringify({ services }, undefined, args.watch ? undefined : 2)];
    return renderServices(services, { width: ui.outWidth, now: clock.now(), verbose: args.verbose, paint: ui.paint });
  };
  if (args.watch) await watch(async () => render(pickByName(await listServices(context), args.names).found), context);
  else {
    const services = await listServices(context);
    const { found, missing } = pickByName(services, args.names);
    // What exists is shown even when something else does not.
    if (found.length > 0 || missing.length === 0) for (const line of render(found)) ui.print(line);
    if (missing[0] !== undefined) throw serviceNotFound(missing[0], services);
  }
}

async function endpointOf(args: StatusArgs, context: CommandContext): Promise<string> {
  const names = args.endpoint === true ? args.names : [args.endpoint ?? '', ...args.names];
  const [name] = names;
  if (name === undefined || names.length > 1) {
    throw new SvcError('SVC_USAGE', 'One service is needed to print its endpoint.', { hint: 'Run: svc serve status --endpoint NAME' });
  }
  const services = await listServices(context);
  const service = services.find((each) => each.name === name);
  if (service === undefined) throw serviceNotFound(name, services);
  return service.endpoint;
}

async function listServices({ connection }: CommandContext): Promise<readonly ServiceView[]> {
  const api = await connection.existing();
  return api === undefined ? [] : (await api.call('listServices')).services;
}
