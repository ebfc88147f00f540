import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { ExecResult } from '../remote.ts';
import { runCaptured } from './captured.ts';
import type { SessionMachine } from './session-machine.ts';
import { plainWords, workError } from './work-error.ts';

/** Small files are read whole; nothing that is read so is near this. */
const maxFileBytes = 268_435_456;

/** Exit code for a file that is not there; one that no tool used here gives. */
const notThere = 44;

/**
 * What decides is whether the file is there, not the words of a shell, which each has its own. Opening one that is not there says when that is only
 * as a folder may not be searched. A file may be made at any moment, and one that vanishes while it is read (a process that ended, below /proc) is one
 * that is not there.
 */
const readScript = `[ -e "$1" ] || true < "$1" || exit ${notThere}
cat < "$1" && exit 0
[ -e "$1" ] || exit ${notThere}
exit 1`;

/** What was cut off on its way must not take the old file's place, so that the length is looked at first. */
const writeScript = `umask 077
mkdir -p -- "\${1%/*}/" || exit 1
trap 'rm -f -- "$2"' EXIT
cat > "$2" && [ "$(wc -c < "$2")" -eq "$4" ] && chmod "$3" "$2" && mv -f -- "$2" "$1"`;

/** The file's content, or undefined when it is not there. */
export async function readRemoteFile(machine: SessionMachine, path: string): Promise<string | undefined> {
  const argv = ['sh', '-c', readScript, 'sh', path];
  const result = await runCaptured(machine, { argv, env: plainWords, isRepeatable: true, maxBytes: maxFileBytes });
  if (result.exitCode === 0) return result.stdout;
  if (isAbsent(result)) return undefined;
  throw workError(machine, `The file ${path} could not be read`, result.stderr);
}

/** Whether a file could not be read as it was not there, and not as it may not be looked for. */
function isAbsent({ exitCode, stderr }: ExecResult): boolean {
  return exitCode === notThere && !stderr.includes('ermission denied');
}

/** Puts a file in place in one step, with the folders above it. */
export async function writeRemoteFile(machine: SessionMachine, path: string, content: string, mode: number): Promise<void> {
  if (!path.startsWith('/')) throw new SvcError('SVC_INTERNAL', `A path on a machine must be absolute: ${path}`);
  const input = Buffer.from(content, 'utf8');
  const temporary = `${path}.${randomHex(12)}.new`;
  const argv = ['sh', '-c', writeScript, 'sh', path, temporary, mode.toString(8), String(input.length)];
  const { exitCode, stderr } = await runCaptured(machine, { argv, env: plainWords, input, isRepeatable: true });
  if (exitCode !== 0) throw workError(machine, `The file ${path} could not be written`, stderr);
}
