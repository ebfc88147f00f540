import { describeGpus } from '../../domain/gpus.ts';
import type { FoundIsolation } from '../../remote/isolation/find-isolation.ts';
import { isolationNames, outboundNames } from '../../remote/isolation/kinds.ts';
import type { Clock } from '../../shared/clock.ts';
import { withLateness } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ProviderCheck } from '../provider.ts';
import { reasonOf, type Host, type HostState } from './host.ts';
import { whyUnfit } from './host-facts.ts';
import { freeShare } from './host-share.ts';
import { isolationRemedies } from './isolation.ts';

/** A check may take so long, ms: what hosts have not said by then is left open. Callers wait for five seconds. */
const checkMs = 4_000;

/** What looking at one host came to. */
interface HostFinding {
  readonly isUsable: boolean;
  /** Of the host's line. */
  readonly text: string;
  readonly remedies: readonly string[];
}

/** What checking needs. */
export interface SshCheck {
  readonly hosts: readonly Host[];
  /** The file the pools are in; undefined where there is none. */
  readonly file: string | undefined;
  /** Where a file of our own would be. */
  readonly ownFile: string;
  /** Whether this home has machines on any host. */
  readonly hasMachines: boolean;
  readonly isolation: (host: Host, state: HostState) => Promise<FoundIsolation>;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** The pools as `svc check` shows them. */
export async function checkHosts({ hosts, file, ownFile, hasMachines, isolation, clock, signal }: SshCheck): Promise<ProviderCheck> {
  if (hosts.length === 0) {
    const remedy = `To use hosts of your own, list them in ${ownFile}: docs/clouds/ssh.md`;
    return { enabled: false, summary: 'no pools of hosts', remedies: [remedy], details: [], sharedPorts: undefined };
  }
  const look = (late: Promise<undefined>) => Promise.all(hosts.map((host) => findOut(host, isolation, late)));
  const findings = await withLateness(clock, checkMs, look, signal);
  const usable = findings.filter(({ isUsable }) => isUsable).length;
  const pools = new Set(hosts.map(({ pool }) => pool)).size;
  const counted = `${usable} of ${hosts.length} host${hosts.length === 1 ? '' : 's'} in ${pools} pool${pools === 1 ? '' : 's'} can be used`;
  return {
    // What we have on hosts that are away is ours still: the place goes on being asked for it.
    enabled: usable > 0 || hasMachines,
    summary: file === undefined || file === ownFile ? counted : `${counted}; from ${file}`,
    remedies: [...new Set(findings.flatMap(({ remedies }) => remedies))],
    details: hosts.map((host, index) => [host.name, findings[index]?.text ?? ''] as const),
    sharedPorts: undefined,
  };
}

async function findOut(host: Host, isolation: SshCheck['isolation'], late: Promise<undefined>): Promise<HostFinding> {
  try {
    const state = await Promise.race([host.look(), late]);
    if (state === undefined) return { isUsable: false, text: `no answer within ${checkMs / 1_000} s yet`, remedies: [] };
    const unfit = whyUnfit(state.facts);
    const text = describeHost(state);
    if (unfit !== undefined) return { isUsable: false, text: `${unfit.why} (${text})`, remedies: [`${host.name}: ${unfit.remedy}`] };
    const found = await Promise.race([isolation(host, state), late]);
    if (found === undefined) return { isUsable: true, text: `${text}; isolation: not tried yet`, remedies: [] };
    const refused = found.refused.map(([name, why]) => `; not ${name}: ${why}`).join('');
    return {
      isUsable: true,
      text: `${text}; isolation: ${isolationNames[found.kind]}, outbound: ${outboundNames[found.outbound]}${found.kind === 'none' ? refused : ''}`,
      remedies: isolationRemedies(found, state.facts).map((remedy) => `${host.name}: ${remedy}`),
    };
  } catch (error) {
    const remedies = error instanceof SvcError ? [`${host.name}: ${error.hint}`] : [];
    return { isUsable: false, text: reasonOf(error), remedies };
  }
}

const leftOf = (left: number, all: number): string => (left === all ? `${all}` : `${left} of ${all}`);

function describeHost({ facts, machines }: HostState): string {
  const { cpus, memoryGb } = facts;
  const free = freeShare(facts, machines);
  const parts = [
    `${leftOf(free.cpus, cpus)} CPUs`,
    `${leftOf(free.memoryGb, memoryGb)} GB`,
    `GPUs: ${describeGpus(facts.gpus)}`,
    `disk: ${Math.floor(facts.freeBytes / 1_073_741_824)} GB free`,
    facts.arch,
    facts.libc,
    `as ${facts.user}`,
    ...(machines.length === 0 ? [] : [`${machines.length} machine${machines.length === 1 ? '' : 's'}`]),
  ];
  return parts.join(', ');
}
