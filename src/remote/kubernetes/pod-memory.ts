import type { MemoryKills } from '../remote.ts';
import type { SessionMachine } from '../session/session-machine.ts';
import { runCaptured } from '../session/captured.ts';

/** What a container sees of its own control group: in version 2 and in version 1 of them. */
const script = `cd /sys/fs/cgroup 2> /dev/null || exit 0
cat memory.events memory/memory.oom_control 2> /dev/null
for file in memory.max memory/memory.limit_in_bytes; do
  [ ! -r "$file" ] || echo "limit $(cat "$file")"
done`;

/** A limit from here on is none: version 1 says the largest number there is. */
const noLimitBytes = 2 ** 60;

/** How often the pod's limit of memory ended one of its processes. */
export async function podMemoryKills(machine: SessionMachine, signal: AbortSignal | undefined): Promise<MemoryKills | undefined> {
  const { stdout } = await runCaptured(machine, { argv: ['sh', '-c', script], isRepeatable: true, signal });
  return parseMemoryKills(stdout);
}

/** Pure. Undefined where the system does not count. */
export function parseMemoryKills(text: string): MemoryKills | undefined {
  const numberOf = (name: string): number | undefined => {
    const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const kills = numberOf('oom_kill');
  if (kills === undefined) return undefined;
  const limitBytes = numberOf('limit');
  return { kills, ...(limitBytes === undefined || limitBytes >= noLimitBytes ? {} : { limitBytes }) };
}
