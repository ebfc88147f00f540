import { describeGpus } from '../../domain/gpus.ts';
import type { FoundIsolation } from '../../remote/isolation/find-isolation.ts';
import { describeFilter, filterRemedies } from '../../remote/isolation/filter-report.ts';
import { isolationNames, outboundNames } from '../../remote/isolation/kinds.ts';
import { describeLimits, limitsRemedies } from '../../remote/isolation/limits.ts';
import type { Clock } from '../../shared/clock.ts';
import { withLateness } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import { bytesPerGb } from '../../shared/units.ts';
import { checkOf, lateFinding, type CheckFinding } from '../check-finding.ts';
import type { ProviderCheck } from '../provider.ts';
import { reasonOf, type Host, type HostState } from './host.ts';
import { whyUnfit } from './host-facts.ts';
import { freeShare } from './host-share.ts';
import { isolationRemedies } from './isolation.ts';

/** Limit of a check, ms. Callers wait for five seconds. */
const checkMs = 4_000;

interface SshCheck {
  readonly hosts: readonly Host[];
  /** The pools file in use. */
  readonly file: string | undefined;
  /** svc's own pools file, which may not exist. */
  readonly ownFile: string;
  readonly hasMachines: boolean;
  readonly isolation: (host: Host, state: HostState) => Promise<FoundIsolation>;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** Checks the pools for `svc check`. */
export async function checkHosts({ hosts, file, ownFile, hasMachines, isolation, clock, signal }: SshCheck): Promise<ProviderCheck> {
  if (hosts.length === 0) {
    const remedy = `To use hosts of your own, list them in ${ownFile}: docs/clouds/ssh.md`;
    return { enabled: false, summary: 'no pools of hosts', remedies: [remedy], details: [], sharedPorts: undefined };
  }
  const checkAll = (late: Promise<undefined>) => Promise.all(hosts.map((host) => findOut(host, isolation, late)));
  const names = hosts.map(({ name }) => name);
  const { usable, ...found } = checkOf(names, await withLateness(clock, checkMs, checkAll, signal), checkMs);
  const pools = new Set(hosts.map(({ pool }) => pool)).size;
  const counted = `${usable} of ${hosts.length} host${hosts.length === 1 ? '' : 's'} in ${pools} pool${pools === 1 ? '' : 's'} can be used`;
  return {
    // Machines on unreachable SSH hosts still belong to this home, so callers must go on polling.
    enabled: usable > 0 || hasMachines,
    summary: file === undefined || file === ownFile ? counted : `${counted}; from ${file}`,
    sharedPorts: undefined,
    ...found,
  };
}

async function findOut(host: Host, isolation: SshCheck['isolation'], late: Promise<undefined>): Promise<CheckFinding> {
  try {
    const state = await Promise.race([host.poll(), late]);
    if (state === undefined) return lateFinding(checkMs);
    const unfit = whyUnfit(state.facts);
    const text = describeHost(state);
    if (unfit !== undefined) return { isUsable: false, text: `${unfit.why} (${text})`, remedies: [`${host.name}: ${unfit.remedy}`] };
    const found = await Promise.race([isolation(host, state), late]);
    if (found === undefined) return { isUsable: true, text: `${text}; isolation: not tried yet`, remedies: [] };
    const { arch, tools, limits, user } = state.facts;
    const filter = { isolation: found.kind, arch, hasPerl: tools.has('perl') };
    const refused = found.refused.map(([name, why]) => `; not ${name}: ${why}`).join('');
    return {
      isUsable: true,
      text: `${text}; isolation: ${isolationNames[found.kind]}, outbound: ${outboundNames[found.outbound]}${found.kind === 'none' ? refused : ''}; system call filter: ${describeFilter(filter)}; limits: ${describeLimits(limits, user, found.kind)}`,
      remedies: [...isolationRemedies(found, state.facts), ...filterRemedies(filter), ...limitsRemedies(limits, user)].map(
        (remedy) => `${host.name}: ${remedy}`,
      ),
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
    `disk: ${Math.floor(facts.freeBytes / bytesPerGb)} GB free`,
    facts.arch,
    facts.libc,
    `as ${facts.user}`,
    ...(machines.length === 0 ? [] : [`${machines.length} machine${machines.length === 1 ? '' : 's'}`]),
  ];
  return parts.join(', ');
}
