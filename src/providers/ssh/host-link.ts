import { readFile } from 'node:fs/promises';
import type { Remote } from '../../remote/remote.ts';
import { SvcError } from '../../shared/errors.ts';
import { programFile } from '../../shared/program-files.ts';
import { parseHostReply, type HostReply } from './host-reply.ts';

/** A file to be put onto a host together with a question. */
export interface SentFile {
  readonly name: string;
  readonly content: string;
  /** Octal digits. */
  readonly mode: string;
}

/** One question to `src/node/host.sh`. */
export interface HostQuestion {
  readonly argv: readonly [command: 'look' | 'create' | 'destroy' | 'try', ...args: string[]];
  readonly files?: readonly SentFile[];
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Takes the script from its input and becomes it; what is left of the input is the script's. */
const starter = 'script=$(head -c "$1"); shift; exec sh -c "$script" host.sh "$@"';

let script: Promise<string> | undefined;

/** As timeout(1) and remotes report it. */
const timedOut = 124;

/**
 * Asks a host. Throws what the remote throws when it cannot be reached (SVC_SSH, SVC_HOST_KEY and the like), SVC_SSH when it says nothing in
 * time, and SVC_HOST_UNFIT when something else than a POSIX shell answers.
 */
export async function askHost(remote: Remote, name: string, question: HostQuestion): Promise<HostReply> {
  script ??= readFile(programFile('src/node/host.sh'), 'utf8');
  const text = await script;
  const files = (question.files ?? []).map(({ mode, name: file, content }) => `${mode} ${Buffer.byteLength(content)} ${file}\n${content}`);
  const result = await remote.exec(['sh', '-c', starter, 'sh', String(Buffer.byteLength(text)), ...question.argv], {
    input: [text, ...files].join(''),
    timeoutMs: question.timeoutMs,
    ...(question.signal === undefined ? {} : { signal: question.signal }),
  });
  const reply = parseHostReply(result.stdout);
  if (reply?.has('result') === true) return reply;
  if (result.exitCode === timedOut)
    throw new SvcError('SVC_SSH', `The host ${name} did not answer within ${Math.round(question.timeoutMs / 1_000)} s.`);
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
