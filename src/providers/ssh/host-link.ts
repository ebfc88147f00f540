import { readFile } from 'node:fs/promises';
import type { Remote } from '../../remote/remote.ts';
import { SvcError } from '../../shared/errors.ts';
import { programFile } from '../../shared/program-files.ts';

/** A file that is sent with a request. */
export interface SentFile {
  readonly name: string;
  readonly content: string;
  /** Octal digits. */
  readonly mode: string;
}

/** A request to `src/node/host.sh`. */
export interface HostRequest {
  readonly argv: readonly [command: 'look' | 'create' | 'destroy' | 'try', ...args: string[]];
  readonly files?: readonly SentFile[];
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Executes the script at the beginning of its input; the rest is the script's input. */
const starter = 'script=$(head -c "$1"); shift; exec sh -c "$script" host.sh "$@"';

let script: Promise<string> | undefined;

/** host.sh uses the functions of limits.sh. */
async function hostScript(): Promise<string> {
  const texts = await Promise.all(['limits', 'host'].map((name) => readFile(programFile(`src/node/${name}.sh`), 'utf8')));
  return texts.join('\n');
}

/** Exit code of timeout(1); remotes use it too. */
const timedOut = 124;

/**
 * Throws SVC_SSH when no answer comes in time, SVC_HOST_UNFIT when anything but a POSIX shell answers, and the remote's
 * error, such as SVC_HOST_KEY, when it cannot reach the SSH host.
 */
export async function askHost(remote: Remote, name: string, request: HostRequest): Promise<HostReply> {
  script ??= hostScript();
  const text = await script;
  const files = (request.files ?? []).map(({ mode, name: file, content }) => `${mode} ${Buffer.byteLength(content)} ${file}\n${content}`);
  const result = await remote.exec(['sh', '-c', starter, 'sh', String(Buffer.byteLength(text)), ...request.argv], {
    input: [text, ...files].join(''),
    timeoutMs: request.timeoutMs,
    ...(request.signal === undefined ? {} : { signal: request.signal }),
  });
  const reply = parseHostReply(result.stdout);
  if (reply?.has('result') === true) return reply;
  if (result.exitCode === timedOut)
    throw new SvcError('SVC_SSH', `The host ${name} did not answer within ${Math.round(request.timeoutMs / 1_000)} s.`);
  if (reply !== undefined) throw new SvcError('SVC_SSH', `The answer of the host ${name} was cut short.`);
  const complaint = (result.stderr.trim() || result.stdout.trim()).split('\n').at(-1)?.replace(/\.$/, '') ?? '';
  throw new SvcError(
    'SVC_HOST_UNFIT',
    `The host ${name} has no POSIX shell that answers${complaint === '' ? '' : `: ${complaint.slice(0, 200)}`}.`,
    {
      hint: `This must print "ok": ssh ${name} 'sh -c "echo ok"'`,
    },
  );
}

/** The values of each name, in order. */
export type HostReply = ReadonlyMap<string, readonly string[]>;

/** First line of a reply. Login scripts may print lines above it. */
const begin = 'svc-host=1';

/** Undefined when the output has no reply. A reply that was cut short has no `result`. */
export function parseHostReply(output: string): HostReply | undefined {
  const lines = output.split('\n');
  const start = lines.lastIndexOf(begin);
  if (start < 0) return undefined;
  const reply = new Map<string, string[]>();
  for (const line of lines.slice(start + 1)) {
    const at = line.indexOf('=');
    if (at < 1) continue;
    const name = line.slice(0, at);
    const values = reply.get(name) ?? [];
    reply.set(name, values);
    values.push(line.slice(at + 1));
  }
  return reply;
}

/** The only value of a name; undefined when it is missing or empty. */
export function valueOf(reply: HostReply, name: string): string | undefined {
  const value = reply.get(name)?.[0]?.trim();
  return value === '' ? undefined : value;
}
