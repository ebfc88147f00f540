/** A pid alone can be reused. `startTicks` is field 22 of /proc/PID/stat. */
export interface RecordedProcess {
  readonly pid: number;
  readonly startTicks: number;
}

/** A job's file `status`, which `node/runner.sh` writes. Times are ms since the epoch by the machine's clock. */
export interface JobRecord {
  /** `waiting`: prepared, until all other nodes are. */
  readonly phase: 'setup' | 'waiting' | 'run' | 'ended';
  readonly bootId: string;
  readonly runner: RecordedProcess | undefined;
  /** The process whose end ends the phase. */
  readonly program: RecordedProcess | undefined;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly exitCode: number | undefined;
  /** Such as `SIGKILL`. */
  readonly signal: string | undefined;
  readonly failedPhase: 'setup' | 'run' | undefined;
}

/** Folder of a job's files. */
export function jobDir(baseDir: string, name: string): string {
  return `${baseDir}/jobs/${name}`;
}

/** Undefined when the text is not a valid record. */
export function parseJobRecord(text: string): JobRecord | undefined {
  const fields = new Map(
    text.split('\n').flatMap((line) => {
      const at = line.indexOf('=');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
  const phase = fields.get('phase');
  if (phase !== 'setup' && phase !== 'waiting' && phase !== 'run' && phase !== 'ended') return undefined;
  const failed = fields.get('failed');
  return {
    phase,
    bootId: fields.get('boot') ?? '',
    runner: parseProcess(fields.get('runner')),
    program: parseProcess(fields.get('program')),
    startedAt: parseNumber(fields.get('started')),
    endedAt: parseNumber(fields.get('ended')),
    exitCode: parseNumber(fields.get('exit')),
    signal: fields.get('signal') === '' ? undefined : fields.get('signal'),
    failedPhase: failed === 'setup' || failed === 'run' ? failed : undefined,
  };
}

/** Formats a record as the runner does. */
export function formatJobRecord(record: JobRecord): string {
  const fields: readonly (readonly [string, string | number | undefined])[] = [
    ['phase', record.phase],
    ['boot', record.bootId],
    ['runner', formatProcess(record.runner)],
    ['program', formatProcess(record.program)],
    ['started', record.startedAt],
    ['ended', record.endedAt],
    ['exit', record.exitCode],
    ['signal', record.signal],
    ['failed', record.failedPhase],
  ];
  return fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}\n`])).join('');
}

function formatProcess(process: RecordedProcess | undefined): string | undefined {
  return process === undefined ? undefined : `${process.pid} ${process.startTicks}`;
}

function parseProcess(text: string | undefined): RecordedProcess | undefined {
  const match = /^(\d+) (\d+)$/.exec(text ?? '');
  return match === null ? undefined : { pid: Number(match[1]), startTicks: Number(match[2]) };
}

function parseNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
