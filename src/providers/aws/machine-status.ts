import type { MachineNotice, MachineStatus } from '../provider.ts';
import type { Instance, SpotInstanceRequest } from './client.ts';

/** What an instance's state means, without what it cannot know: whether it can be worked on yet. */
export type InstanceStatus = Exclude<MachineStatus, { state: 'running' }> | { readonly state: 'running' };

/** A status from an instance as AWS shows it. Source of the reasons: `StateReason` in the reference of EC2's API. */
export function statusOf(instance: Pick<Instance, 'State' | 'StateReason' | 'StateTransitionReason'>): InstanceStatus {
  switch (instance.State?.Name) {
    case 'running':
      return { state: 'running' };
    case 'stopping':
    case 'stopped':
      return { state: 'stopped' };
    case 'shutting-down':
    case 'terminated':
      return { state: 'gone', reason: goneReason(instance) };
    case 'pending':
    case undefined:
      return { state: 'booting' };
    default:
      return { state: 'booting' };
  }
}

const preemptions: ReadonlySet<string> = new Set([
  'Server.SpotInstanceTermination',
  'Server.SpotInstanceShutdown',
  // AWS accepted and had nothing after all: like a machine that was taken at once.
  'Server.InsufficientInstanceCapacity',
]);

function goneReason({ StateReason, StateTransitionReason }: Pick<Instance, 'StateReason' | 'StateTransitionReason'>) {
  const code = StateReason?.Code ?? /^[A-Z]\w+\.\w+/.exec(StateTransitionReason ?? '')?.[0] ?? '';
  if (preemptions.has(code)) return 'preempted';
  if (code.startsWith('Client.') || (StateTransitionReason ?? '').startsWith('User initiated')) return 'deleted';
  return 'unknown';
}

/** Status codes of spot requests that announce the end: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html */
const announcements: ReadonlySet<string> = new Set(['marked-for-termination', 'marked-for-stop']);

/** AWS takes a marked machine two minutes after it was marked, ms. */
const graceMs = 120_000;

/** What a spot request announces about its machine; undefined when nothing. */
export function noticeOf(request: Pick<SpotInstanceRequest, 'Status'>): MachineNotice | undefined {
  const code = request.Status?.Code;
  if (code === undefined || !announcements.has(code)) return undefined;
  const marked = request.Status?.UpdateTime?.getTime();
  return { kind: 'interruption', at: marked === undefined || Number.isNaN(marked) ? undefined : marked + graceMs };
}
