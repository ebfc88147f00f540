import { runCommand } from '../remote/run-command.ts';
import { wholeEnv } from '../shared/env.ts';
import type { Clock } from '../shared/clock.ts';

/** Timeout until the machine begins to shut down, ms. */
const timeoutMs = 20_000;

/** As root or through sudo. */
const script = `
for command in "systemctl poweroff" "shutdown -h now" poweroff; do
  if [ "$(id -u)" = 0 ]; then $command && exit 0; else sudo -n $command && exit 0; fi
done
exit 1`;

interface PowerOffDeps {
  readonly clock: Clock;
  readonly log: {
    info(message: string): void;
    error(details: object, message: string): void;
  };
}

/** Powers off this machine: an idle machine costs money. Without permission it stays on, and the log says so. */
export async function powerOff({ clock, log }: PowerOffDeps): Promise<void> {
  log.info('nothing needs the controller: its machine is switched off');
  const { exitCode, stderr } = await runCommand(['sh', '-c', script], { env: wholeEnv(), clock, timeoutMs });
  if (exitCode !== 0)
    log.error({ stderr: stderr.slice(-500) }, 'the machine of the controller cannot be switched off and goes on costing money');
}
