/** What an inference engine reports about its load. */
export interface EngineMetrics {
  /** Requests that the engine has accepted and does not run yet. */
  readonly waiting: number;
  /** Used share of the KV cache, 0 to 1; undefined for an engine that does not report it. */
  readonly cacheUsage: number | undefined;
}

/** The last metrics of a replica. */
export interface EngineReading extends EngineMetrics {
  /** When they were read, monotonic ms. */
  readonly at: number;
}

/** The load inside the engines of the ready replicas. */
export interface EngineLoad {
  /** Requests that wait inside the engines. */
  readonly waiting: number;
  /** Mean used share of the KV caches, 0 to 1; undefined when no engine reports it. */
  readonly cacheUsage: number | undefined;
  /** Ready replicas with and without recent metrics. */
  readonly measured: number;
  readonly missing: number;
}

/** Time between two readings of a replica's metrics, ms. */
export const engineReadIntervalMs = 5_000;

/** Older readings count as missing, ms: two failed readings are tolerated. */
const readingLifetimeMs = 4 * engineReadIntervalMs;

/**
 * Names of the gauges. vLLM: docs.vllm.ai "Production Metrics", with the older name of the cache last. SGLang:
 * docs.sglang.io "Production Metrics". TGI: its reference "Metrics"; it reports no cache.
 */
const waitingNames = ['vllm:num_requests_waiting', 'sglang:num_queue_reqs', 'tgi_queue_size'];
const cacheNames = ['vllm:kv_cache_usage_perc', 'sglang:token_usage', 'vllm:gpu_cache_usage_perc'];

/** SGLang's ranks of one scheduler report the same requests. Other series (engines, models) have their own. */
const copiedLabels: ReadonlySet<string> = new Set(['tp_rank', 'pp_rank', 'moe_ep_rank']);

/** Reads the text format of Prometheus. Undefined without the number of waiting requests of a known engine. */
export function readEngineMetrics(text: string): EngineMetrics | undefined {
  const values = new Map<string, Map<string, number>>();
  for (const line of text.split('\n')) {
    const sample = readSample(line);
    if (sample === undefined) continue;
    const series = values.get(sample.name) ?? new Map<string, number>();
    series.set(sample.series, Math.max(sample.value, series.get(sample.series) ?? 0));
    values.set(sample.name, series);
  }
  const valuesOf = (names: readonly string[]): readonly number[] | undefined => {
    const name = names.find((one) => values.has(one));
    return name === undefined ? undefined : [...(values.get(name)?.values() ?? [])];
  };
  const waiting = valuesOf(waitingNames)?.reduce((sum, value) => sum + value, 0);
  const caches = valuesOf(cacheNames);
  if (waiting === undefined) return undefined;
  return { waiting, cacheUsage: caches === undefined ? undefined : Math.min(1, Math.max(...caches)) };
}

/** The load of the ready replicas from their last readings; `now`: monotonic ms. */
export function engineLoadOf(readings: readonly (EngineReading | undefined)[], now: number): EngineLoad {
  const recent = readings.filter((reading) => reading !== undefined).filter(({ at }) => now - at <= readingLifetimeMs);
  const caches = recent.flatMap(({ cacheUsage }) => cacheUsage ?? []);
  return {
    waiting: recent.reduce((sum, { waiting }) => sum + waiting, 0),
    cacheUsage: caches.length === 0 ? undefined : caches.reduce((sum, usage) => sum + usage, 0) / caches.length,
    measured: recent.length,
    missing: readings.length - recent.length,
  };
}

/**
 * Above which mean of a replica the engines are saturated: the default thresholds of the saturation detector in
 * Kubernetes' Gateway API Inference Extension (`DefaultQueueDepthThreshold`, `DefaultKVCacheUtilThreshold`).
 */
const saturated = { waiting: 5, cacheUsage: 0.8 } as const;

/**
 * Whether the engines have too little room for the requests that they have. Missing metrics count as an idle engine, as
 * in Kubernetes' HPA: mostly they belong to a replica that has just become ready.
 */
export function areSaturated({ waiting, measured, missing, cacheUsage = 0 }: EngineLoad): boolean {
  const ready = measured + missing;
  return waiting > saturated.waiting * ready || cacheUsage * measured > saturated.cacheUsage * ready;
}

/** The load as part of a sentence for users. */
export function describeEngines({ waiting, cacheUsage, missing }: EngineLoad): string {
  const cache = cacheUsage === undefined ? '' : `, KV cache ${Math.round(cacheUsage * 100)} % used`;
  return `${waiting} waiting in engines${cache}${missing === 0 ? '' : `, metrics of ${missing} missing`}`;
}

interface Sample {
  readonly name: string;
  /** The labels that distinguish series with requests of their own. */
  readonly series: string;
  readonly value: number;
}

const knownNames: ReadonlySet<string> = new Set([...waitingNames, ...cacheNames]);
const samplePattern = /^([A-Za-z_:][A-Za-z0-9_:]*)[ \t]*(?=[{ \t])/;
/** One label with its escapes (`\\`, `\"`, `\n`), and the comma after it. */
const labelPattern = /[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|(?=\}))/y;

/** A line with a known name and a number from 0 on; otherwise undefined. NaN and infinity are no numbers of requests. */
function readSample(line: string): Sample | undefined {
  const name = samplePattern.exec(line)?.[1];
  if (name === undefined || !knownNames.has(name)) return undefined;
  let rest = line.slice(name.length).trimStart();
  const labels: string[] = [];
  if (rest.startsWith('{')) {
    labelPattern.lastIndex = 1;
    let end = 1;
    for (let label = labelPattern.exec(rest); label !== null; label = labelPattern.exec(rest)) {
      end = labelPattern.lastIndex;
      if (!copiedLabels.has(label[1] ?? '')) labels.push(`${label[1]}="${label[2]}"`);
    }
    const close = /^[ \t]*\}/.exec(rest.slice(end));
    if (close === null) return undefined;
    rest = rest.slice(end + close[0].length);
  }
  // A timestamp may follow the value.
  const [text = ''] = rest.trim().split(/[ \t]+/);
  const value = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? { name, series: labels.toSorted().join(), value } : undefined;
}
