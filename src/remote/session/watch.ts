import type { Clock } from '../../shared/clock.ts';
import type { SessionMachine } from './session-machine.ts';

/** Says a line whenever names, sizes or times of a folder's files differ from the look before. Parts of a second count where `ls` tells them. */
const script = `for svc_ls in '-lAinq --time-style=full-iso' '-lAin --full-time' -lAin; do ls $svc_ls / > /dev/null 2>&1 && break; done
look() { ls $svc_ls -- "$1" 2> /dev/null; }
seen=$(look "$1")
echo
while sleep 0.2 2> /dev/null || sleep 1; do
  now=$(look "$1")
  [ "$now" = "$seen" ] || { seen=$now; echo; }
done`;

/** Between attempts to reach a machine that does not answer, ms. */
const pauseMs = 1_000;

/**
 * Calls `onChange` soon after files in a folder of the machine changed. While the connection is broken nothing is noticed; when there is one again
 * it is called, as something may have changed meanwhile.
 */
export async function watchRemoteFolder(
  machine: () => Promise<SessionMachine>,
  dir: string,
  onChange: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const request = {
    argv: ['sh', '-c', script, 'sh', dir],
    env: {},
    input: Buffer.alloc(0),
    onStdout: () => onChange(),
    onStderr: () => undefined,
    signal,
  };
  while (!signal.aborted) {
    try {
      await (await machine()).session(request, { lane: 'stream', isRepeatable: false });
    } catch {
      // Whoever watches also asks now and then, and learns there what is wrong. Here it is only tried again.
    }
    await clock.sleep(pauseMs, signal);
  }
}
