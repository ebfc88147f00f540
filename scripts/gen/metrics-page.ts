import {
  codeLabels,
  connectFailures,
  refusedConnections,
  refusedForFiles,
  rejectReasons,
  retryReasons,
} from '../../src/balancer/metrics/label-values.ts';
import { metricTable, type LabelName, type MetricFamily } from '../../src/balancer/metrics/metric-table.ts';
import { page, table } from './markdown.ts';

const code = (text: string): string => `\`${text}\``;
const list = (values: readonly string[]): string => values.map(code).join(', ');

const labelMeanings = {
  code: `The HTTP status that the client was told: ${list(codeLabels)}. A status that is not in this list counts for its class; ${code('none')}: the client left before it was told anything.`,
  replica: `Number of the replica, as in ${code('svc serve status')}; ${code('none')}: no replica was chosen. The values of a removed replica stay until another replica needs their memory, so that the last ones are not lost.`,
  place: 'Where the replica runs, such as `local` or `aws/us-east-2`.',
  reason: `Of retries: ${list(retryReasons)}. Of failed connects: ${list(connectFailures)}. Of refused connections: ${list(refusedConnections)}. Of rejected requests, as in the field ${code('x-svc-reason')} of the response: ${list(rejectReasons)}.`,
  kind: `What was refused: ${list(refusedForFiles)}.`,
  thread: 'Number of the thread, from 0.',
  service: 'Name of the service.',
  version: 'Version of svc.',
  node_version: 'Version of Node.js.',
} as const satisfies Readonly<Record<LabelName, string>>;

const nameOf = ({ name, type }: MetricFamily): string => code(type === 'counter' ? `${name}_total` : name);

function helpOf({ help, bounds }: MetricFamily): string {
  return bounds === undefined ? help : `${help} Buckets, s: ${bounds.join(', ')}.`;
}

/** docs/reference/metrics.md */
export function renderMetricsPage(): string {
  const families: readonly MetricFamily[] = Object.values(metricTable);
  return page(
    '# Metrics',
    'What the endpoint of a service counts, in the text format of Prometheus (0.0.4), or as OpenMetrics 1.0 to those that ask for it. From `src/balancer/metrics/metric-table.ts`.',
    [
      'They can be had in three ways:',
      '',
      '- `svc serve metrics NAME` prints them.',
      '- `http://127.0.0.1:PORT/metrics`, when the service file says `load_balancer: {metrics_port: PORT}`. There is `/healthz` beside it. It is for this machine alone: the port of the endpoint never tells metrics.',
      '- The same over HTTP on a Unix socket, always: `curl --unix-socket ~/.svc/run/m-KEY.sock http://svc/metrics`.',
    ].join('\n'),
    'Counters begin at 0 with the process and do not go back when a thread of it dies. All values of labels are of fixed lists, or replicas there are: no client can make the number of series grow.',
    '## Families',
    table(
      ['Name', 'Type', 'Labels', 'Meaning'],
      families.map((family) => [nameOf(family), family.type, list(family.labels), helpOf(family)]),
    ),
    '## Labels',
    table(
      ['Label', 'Values'],
      Object.entries(labelMeanings).map(([name, meaning]) => [code(name), meaning]),
    ),
    '## Questions and queries',
    table(
      ['Question', 'PromQL'],
      [
        ['Requests a second', code('sum(rate(svc_balancer_requests_total[1m]))')],
        [
          'Share of requests that failed',
          code('sum(rate(svc_balancer_requests_total{code=~"5.."}[5m])) / sum(rate(svc_balancer_requests_total[5m]))'),
        ],
        [
          '99 % of first bytes come within',
          code('histogram_quantile(0.99, sum by (le) (rate(svc_balancer_time_to_first_byte_seconds_bucket[5m])))'),
        ],
        [
          'Mean time to the first byte by replica',
          code(
            'rate(svc_balancer_replica_time_to_first_byte_seconds_sum[5m]) / rate(svc_balancer_replica_time_to_first_byte_seconds_count[5m])',
          ),
        ],
        ['Is the balancer itself the bottleneck? Near 1: yes', code('rate(svc_balancer_event_loop_busy_seconds_total[1m])')],
        ['Is the limit of open files too low?', code('sum by (kind) (rate(svc_balancer_refused_for_open_files_total[5m]))')],
        ['Is load tried again and again?', code('sum(rate(svc_balancer_retries_total[5m])) / sum(rate(svc_balancer_requests_total[5m]))')],
      ],
    ),
  );
}
