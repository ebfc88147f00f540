import type { ServiceView } from '../../api/contract.ts';
import { nameProblem } from '../../domain/names.ts';
import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../context.ts';
import { followUntilReady } from '../follow-service.ts';
import { readServiceFile, type TaskArgs, type TaskBody } from '../task-source.ts';
import type { Ui } from '../ui.ts';

interface UpArgs extends TaskArgs {
  readonly file: string;
  readonly name: string | undefined;
  readonly expose: boolean;
  readonly endpointPort: number | undefined;
  readonly wait: boolean | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

/** Copying a large workdir takes its time, ms. */
const createTimeoutMs = 600_000;

/** `svc serve up`: checks the file here, has the controller put the service up, and follows it where somebody watches. */
export async function serveUp(args: UpArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const problem = args.name === undefined ? undefined : nameProblem(args.name);
  if (problem !== undefined) throw new SvcError('SVC_BAD_NAME', problem);
  const { body, summary } = await readServiceFile(args.file, args, context);
  if (!args.json) for (const line of summary) ui.say(line);

  const created = await create(args, body, context);
  if (created === undefined) return;
  const { name } = created;
  const follow = args.wait ?? ui.outIsTerminal;
  if (!args.json) ui.say(`Service '${name}' is coming up at ${created.endpoint}`);
  const service = follow ? await followUntilReady(name, context) : created;
  if (service === undefined) {
    ui.say(`Service '${name}' goes on coming up. To take it down: svc serve down ${name}`);
    return;
  }
  if (args.json) ui.json(service);
  else if (ui.outIsTerminal) showResult(service, follow, ui);
  // A program that reads this wants the endpoint and nothing else.
  else ui.print(service.endpoint);
}

/** The service as it begins; undefined when interrupted meanwhile. */
async function create(args: UpArgs, task: TaskBody, { ui, connection, signal }: CommandContext): Promise<ServiceView | undefined> {
  const progress = ui.progress();
  progress.now('Handing the service to the controller');
  try {
    const api = await connection.client();
    const body = {
      ...task,
      ...(args.name !== undefined && { name: args.name }),
      ...(args.expose && { expose: true }),
      ...(args.endpointPort !== undefined && { port: args.endpointPort }),
    };
    return (await api.call('createService', { body, timeoutMs: createTimeoutMs })).service;
  } catch (error) {
    if (!signal.aborted) throw error;
    progress.stop();
    ui.say('Interrupted. Whether the service was put up, shows: svc serve status');
    return undefined;
  } finally {
    progress.stop();
  }
}

function showResult(service: ServiceView, followed: boolean, ui: Ui): void {
  const { name, endpoint, replicasReady, targetReplicas } = service;
  if (followed) ui.print(`${ui.paint('good', '✓')} Service '${name}' is ready (${replicasReady} of ${targetReplicas} replicas).`);
  ui.print('');
  ui.print(`  ${ui.paint('strong', 'Endpoint')}      ${endpoint}`);
  ui.print('');
  ui.print(`  See status    svc serve status ${name}`);
  ui.print(`  Read logs     svc serve logs ${name}`);
  ui.print(`  Take it down  svc serve down ${name}`);
}
