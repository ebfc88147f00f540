import type { MachineLimits } from '../../domain/machine-limits.ts';
import { bytesPerGb } from '../../shared/units.ts';
import type { MemoryKills, Remote } from '../remote.ts';
import type { IsolationKind } from './kinds.ts';

/** The limits that a computer can enforce, as `src/node/limits.sh report` found them. */
export interface FoundLimits {
  /** Controllers of cgroup v2: `memory`, `pids`, `cpu`, or none. */
  readonly controllers: readonly string[];
  /** The first reason why some are missing; undefined when nothing is missing. */
  readonly lack: string | undefined;
}

/** Parses the values of the report's two lines. */
export function readLimits(controllers: string | undefined, lack: string | undefined): FoundLimits {
  const known = (controllers ?? '').split(/\s+/).filter((name) => ['memory', 'pids', 'cpu'].includes(name));
  return { controllers: known, lack: lack === '' ? undefined : lack };
}

const delegate =
  "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/svc.conf && sudo systemctl daemon-reload";

interface Lack {
  readonly why: string;
  readonly remedy: string;
}

/** By the reasons of limits.sh. */
function lackOf(lack: string, user: string): Lack {
  switch (lack) {
    case 'v2':
      return {
        why: 'this system has no cgroup v2',
        remedy: 'boot with the kernel parameters systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all',
      };
    case 'linger':
      return {
        why: `systemd would end the groups of ${user} at logout`,
        remedy: `sudo loginctl enable-linger ${user}`,
      };
    case 'cpu':
      return { why: 'the cpu controller is not delegated', remedy: delegate };
    default:
      return {
        why: 'no control group is delegated to this user',
        remedy: user === 'root' ? 'give the container a writable cgroup of its own' : `sudo loginctl enable-linger ${user} && ${delegate}`,
      };
  }
}

/** By controllers of cgroup v2. */
const resources = [
  ['memory', 'memory'],
  ['cpu', 'CPUs'],
  ['pids', 'processes'],
] as const;

/** The limits that work in the isolation, for `svc check`, and why others do not. No kind of isolation bounds the disk. */
export function describeLimits({ controllers, lack }: FoundLimits, user: string, isolation: IsolationKind): string {
  // Without a group, the kernel bounds the processes of each user namespace, but not root's.
  const isCounted = user !== 'root' && (isolation === 'userns' || isolation === 'bwrap');
  const works = (controller: string): boolean => controllers.includes(controller) || (controller === 'pids' && isCounted);
  const names = (some: readonly (typeof resources)[number][]): string => some.map(([, name]) => name).join(', ');
  const missing = names(resources.filter(([controller]) => !works(controller)));
  return [
    names(resources.filter(([controller]) => works(controller))),
    missing === '' ? '' : `none on ${missing}${lack === undefined ? '' : `: ${lackOf(lack, user).why}`}`,
    'none on the disk',
  ]
    .filter((part) => part !== '')
    .join('; ');
}

/** Empty when every limit works. */
export function limitsRemedies({ lack }: FoundLimits, user: string): readonly string[] {
  return lack === undefined ? [] : [`For limits by cpus and memory: ${lackOf(lack, user).remedy}`];
}

/** The text of `limits.conf`, which limits.sh reads as shell. `maxProcesses`: undefined is the default of limits.sh. */
export function limitsConf({ cpus, memoryGb }: MachineLimits, maxProcesses: number | undefined): string {
  const memory = memoryGb === undefined ? '' : Math.floor(memoryGb * bytesPerGb);
  // The kernel refuses less than a hundredth of a CPU.
  const cpu = cpus === undefined ? '' : Math.max(10, Math.round(cpus * 1_000));
  return `svc_memory=${memory}\nsvc_cpu=${cpu}\nsvc_processes=${maxProcesses ?? ''}\n`;
}

/** `Remote.limit` of a machine with `limits.sh` in the folder `dir`; undefined: nothing bounds its programs. */
export function limitCommand(dir: string | undefined): readonly string[] {
  return dir === undefined ? [] : ['sh', `${dir}/limits.sh`, 'run'];
}

/** OOM kills in the group of the machine whose folder is `dir`. Undefined without a group. */
export async function groupMemoryKills(remote: Pick<Remote, 'readFile'>, dir: string | undefined): Promise<MemoryKills | undefined> {
  if (dir === undefined) return undefined;
  const group = (await remote.readFile(`${dir}/group`))?.trim();
  if (group === undefined || group === '') return undefined;
  const [events = '', limit = ''] = await Promise.all([remote.readFile(`${group}/memory.events`), remote.readFile(`${group}/memory.max`)]);
  const kills = Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
  const limitBytes = Number(limit.trim());
  return { kills, ...(limit !== '' && Number.isFinite(limitBytes) && { limitBytes }) };
}
