import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, exit, stderr, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { ReplicaPolicy } from '../../src/domain/task.ts';
import { fixedScaler, knativeScaler, kubernetesScaler, skyServeScaler } from '../../src/simulate/scale-baselines.ts';
import { policyScaler } from '../../src/simulate/scale-production.ts';
import {
  leastReplicaSeconds,
  runScale,
  type ScaleResult,
  type ScalerKind,
  type ScaleTrace,
  simulatedRequestSeconds,
  usualUtilisation,
} from '../../src/simulate/scale-world.ts';

// Compares autoscalers on traces of requests: node bench/simulation/scale.ts FOLDER [PART]. It writes its section of
// RESULTS.md. FOLDER/requests has the files; PART is the middle of their names.
const [folder, part = 'dev'] = argv.slice(2);
if (folder === undefined) {
  stderr.write('Give the folder of the traces: node bench/simulation/scale.ts FOLDER [PART]\n');
  exit(64);
}

interface NamedTrace {
  readonly name: string;
  readonly arrivals: readonly number[];
  readonly capacityQps: number;
}

const linesOf = (name: string): readonly string[] =>
  gunzipSync(readFileSync(join(folder, 'requests', name)))
    .toString()
    .trim()
    .split('\n')
    .slice(1);

function countsOf(name: string, capacityQps: number): NamedTrace {
  return { name: `ServeGen ${name}`, arrivals: linesOf(`servegen_${name}.${part}.counts.csv.gz`).map(Number), capacityQps };
}

function timesOf(name: string, capacityQps: number): NamedTrace {
  const times = linesOf(`azure2023_${name}.${part}.csv.gz`).map((line) => Number(line.split(',')[0]));
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const arrivals = Array.from({ length: Math.floor(last - first) + 1 }, () => 0);
  for (const time of times) arrivals[Math.floor(time - first)] = (arrivals[Math.floor(time - first)] ?? 0) + 1;
  return { name: `Azure ${name}`, arrivals, capacityQps };
}

const traces: readonly NamedTrace[] = [
  countsOf('m-large', 20),
  countsOf('m-small', 10),
  countsOf('deepseek-r1', 1.5),
  timesOf('conv', 0.8),
  timesOf('code', 0.4),
];

const unbounded: ReplicaPolicy = {
  minReplicas: 1,
  maxReplicas: Number.MAX_SAFE_INTEGER,
  numOverprovision: 0,
  targetQpsPerReplica: undefined,
  upscaleDelaySeconds: 0,
  downscaleDelaySeconds: 300,
  dynamicOndemandFallback: false,
  baseOndemandFallbackReplicas: 0,
  spotPlacer: undefined,
};

/** All autoscalers with the settings that a user would write for this capacity. */
function scalers(capacityQps: number): readonly ScalerKind[] {
  const targetQpsPerReplica = usualUtilisation * capacityQps;
  const targetOngoingRequestsPerReplica = targetQpsPerReplica * simulatedRequestSeconds;
  return [
    fixedScaler(0.99),
    skyServeScaler(),
    skyServeScaler(60, 600),
    skyServeScaler(20, 300),
    knativeScaler,
    kubernetesScaler,
    policyScaler('**concurrency**', { ...unbounded, autoscaler: 'concurrency', targetOngoingRequestsPerReplica }),
    policyScaler('**forecast**', { ...unbounded, autoscaler: 'forecast', targetQpsPerReplica }),
  ];
}

interface Row {
  readonly name: string;
  readonly cost: number;
  readonly result: ScaleResult;
}

function compare({ arrivals, capacityQps }: NamedTrace, coldStartSeconds: number): readonly Row[] {
  const trace: ScaleTrace = { arrivals, capacityQps, coldStartSeconds };
  const bound = leastReplicaSeconds(trace);
  return scalers(capacityQps).map((kind) => {
    const result = runScale(trace, kind);
    return { name: kind.name, cost: result.replicaSeconds / bound, result };
  });
}

const percent = (share: number): string => (share * 100).toFixed(2);
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

function tableOf(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  return [line(titles), line(titles.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

/** Cost and late requests of each autoscaler, a column for each trace. */
function summary(coldStartSeconds: number): string {
  const compared = traces.map((trace) => compare(trace, coldStartSeconds));
  const rows = (compared[0] ?? []).map(({ name }, index) => {
    const own = compared.map((one) => one[index]);
    const serveGen = own.slice(0, 3);
    const all = [
      `${mean(serveGen.map((row) => row?.cost ?? 0)).toFixed(3)} / ${percent(mean(serveGen.map((row) => row?.result.late ?? 0)))}`,
      ...own.map((row) => `${row?.cost.toFixed(3)} / ${percent(row?.result.late ?? 0)}`),
    ];
    return [name, ...all, Math.max(...own.map((row) => row?.result.changesPerHour ?? 0)).toFixed(0)];
  });
  return tableOf(['Autoscaler', 'ServeGen, mean', ...traces.map(({ name }) => name), 'Changes/h, most'], rows);
}

const section = `## Autoscaling

\`node bench/simulation/scale.ts FOLDER\` runs each autoscaler over traces of requests, in virtual time, by the functions
that decide in production. Cells: cost relative to a bound with hindsight / share of requests that wait more than 5 s, in
percent. All have a target of 70 % of a replica's capacity, and one set of parameters for all traces.

### Cold start of 183 s

${summary(183)}

### Cold start of 60 s

${summary(60)}

### Cold start of 300 s

${summary(300)}
`;

const path = fileURLToPath(new URL('RESULTS.md', import.meta.url));
const before = readIfPresent(path) ?? '# Simulations: results\n';
const others = before.split(/^(?=## )/m).filter((one) => !one.startsWith('## Autoscaling\n'));
writeFileSync(path, `${[...others.map((one) => one.trimEnd()), section.trimEnd()].join('\n\n')}\n`);
stdout.write(section);

function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
