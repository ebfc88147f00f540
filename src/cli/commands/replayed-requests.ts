import { resolve } from 'node:path';
import type { RouteReply } from '../../api/contract.ts';
import { readLogTime } from '../../shared/log-time.ts';
import { SvcError } from '../../shared/errors.ts';
import { RequestTraceReader, type RequestTrace } from '../../simulate/traces/request-trace.ts';
import { setPolicyFields } from '../../spec/set-policy-fields.ts';
import type { CommandContext } from '../command.ts';
import { simulatedService, type ServiceTask } from '../task-source.ts';
import { apiFor, textLines } from './one-service.ts';

/** How far back a replay goes, ms. The access log may be shorter: it is rotated by size. */
const replayedMs = 86_400_000;

/** What a running service has been through. */
interface ReplayedService {
  readonly trace: RequestTrace;
  /** Median time from launch to ready of its replicas, s; undefined while none was ready. */
  readonly coldStartSeconds: number | undefined;
  /** Price of its newest replica with a known one; undefined on machines that cost nothing. */
  readonly hourlyUsd: number | undefined;
}

/** The task of a running service, with other fields of `replica_policy` (`FIELD=VALUE` each). */
export async function replayedTask(name: string, fields: readonly string[], context: CommandContext): Promise<ServiceTask> {
  const api = await apiFor(name, context);
  const { source, envs, secrets } = await api.call('serviceFile', { params: { name } });
  // Nothing in the simulated fields depends on a secret. The marks of hidden values would be aliases in YAML.
  const text = setPolicyFields(source.replaceAll('***', 'hidden'), fields);
  const file = `${name}.yaml`;
  const given = { envs, secrets: Object.fromEntries(secrets.map((secret) => [secret, 'hidden'])) };
  return simulatedService({ source: text, file: resolve(context.cwd, file), ...given });
}

/** The requests of the last day of a running service, by its access log, and the cold start and price of its replicas. */
export async function replayedService(name: string, context: CommandContext): Promise<ReplayedService> {
  const api = await apiFor(name, context);
  const { replicas } = await api.call('getService', { params: { name } });
  const since = context.clock.now() - replayedMs;
  const reader = new RequestTraceReader(`access log of ${name}`);
  const chunks = api.text('serviceLogs', { params: { name }, query: { target: 'load-balancer', follow: false } });
  let requests = 0;
  for await (const line of textLines(chunks)) {
    if ((arrivalOf(line) ?? 0) < since) continue;
    reader.add(`${line}\n`);
    requests += 1;
  }
  if (requests === 0) {
    throw new SvcError('SVC_BAD_TRACE', `Service '${name}' had no requests in the last 24 hours.`, {
      hint: `Its access log has none. Run: svc serve logs ${name} --load-balancer`,
    });
  }
  const hourlyUsd = replicas.findLast((replica) => replica.hourlyUsd !== null)?.hourlyUsd || undefined;
  return { trace: reader.finish(), coldStartSeconds: coldStartOf(replicas), hourlyUsd };
}

/** ISO 8601, or ms in lines of earlier versions. */
const arrival = /^\{"at":(?:"([^"]*)"|(\d+))/;

/** The arrival of a request, ms. Undefined for lines about refused connections and the balancer's process. */
function arrivalOf(line: string): number | undefined {
  const [, date, ms] = arrival.exec(line) ?? [];
  return line.includes('"outcome":"no_request"') ? undefined : readLogTime(date ?? Number(ms));
}

function coldStartOf(replicas: RouteReply<'getService'>['replicas']): number | undefined {
  const seconds = replicas.flatMap(({ createdAt, launchedAt, readyAt }) =>
    readyAt === null ? [] : [Math.round((Date.parse(readyAt) - Date.parse(launchedAt ?? createdAt)) / 1_000)],
  );
  return seconds.toSorted((a, b) => a - b)[Math.floor(seconds.length / 2)];
}
