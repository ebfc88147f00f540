import type { StateReason } from '@aws-sdk/client-ec2';
import type { Ec2, LaunchFailure } from './ec2.ts';
import type { Ec2Region } from './region.ts';
import type { InstanceRecord, SpotRequestRecord } from './records.ts';
import { visibleTags } from './filters.ts';
import type { LaunchedInstance, MachineAddresses } from '../machine-backend.ts';

/** Terminated or stopped by the user. */
export const userShutdown: StateReason = {
  Code: 'Client.UserInitiatedShutdown',
  Message: 'Client.UserInitiatedShutdown: User initiated shutdown',
};
/** By a program on the instance, such as `shutdown`. */
export const ownShutdown: StateReason = {
  Code: 'Client.InstanceInitiatedShutdown',
  Message: 'Client.InstanceInitiatedShutdown: Instance initiated shutdown',
};
/** By AWS, which reclaims spot capacity. */
export const spotTermination: StateReason = {
  Code: 'Server.SpotInstanceTermination',
  Message: 'Server.SpotInstanceTermination: Spot instance termination',
};
const internalError: StateReason = { Code: 'Server.InternalError', Message: 'Server.InternalError: Internal error on launch' };

function stamp(ms: number): string {
  return new Date(ms)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' GMT');
}

/** Boots an instance that is `pending`, with a real machine when the test has a backend. */
export function comeUp(ec2: Ec2, instance: InstanceRecord, isNew: boolean): void {
  const { epoch } = instance;
  const failure = isNew ? ec2.failureOf(instance) : undefined;
  if (failure !== undefined) return failLaunch(ec2, instance, failure);
  const slept = new Promise<void>((resolve) => {
    ec2.emulation.timers.after(ec2.pendingMs(instance), resolve);
  });
  const machine =
    ec2.machineBackend === undefined
      ? undefined
      : isNew
        ? ec2.machineBackend.launch(described(ec2, instance))
        : ec2.machineBackend.start(instance.id);
  const up = async (): Promise<void> => {
    const [addresses] = await Promise.all([machine, slept]);
    if (instance.epoch === epoch && instance.state === 'pending') run(ec2, instance, addresses);
  };
  up().catch((error: unknown) => {
    ec2.emulation.problem(`the machine of ${instance.id} did not come up: ${String(error)}`);
    if (instance.epoch === epoch) terminate(ec2, instance, internalError);
  });
  return undefined;
}

/** Ends an instance before it runs; it never gets a machine. */
function failLaunch(ec2: Ec2, instance: InstanceRecord, { afterMs, reason }: LaunchFailure): void {
  if (reason === undefined) {
    instance.visibleAt = Number.POSITIVE_INFINITY;
    finishTermination(ec2, ec2.region(instance.region), instance);
    return;
  }
  ec2.emulation.timers.after(ec2.pick(afterMs), () => terminate(ec2, instance, reason, false));
}

function run(ec2: Ec2, instance: InstanceRecord, addresses: MachineAddresses | undefined): void {
  instance.state = 'running';
  instance.privateIp = addresses?.privateIp ?? instance.privateIp;
  if (instance.wantsPublicIp) instance.publicIp = addresses?.publicIp ?? ec2.publicAddresses.take();
}

function described(ec2: Ec2, instance: InstanceRecord): LaunchedInstance {
  const region = ec2.region(instance.region);
  const key = instance.keyName === undefined ? undefined : [...region.keys.values()].find(({ name }) => name === instance.keyName);
  return {
    id: instance.id,
    region: instance.region,
    zone: instance.zone,
    instanceType: instance.type.name,
    spot: instance.spotRequestId !== undefined,
    imageId: instance.imageId,
    userData: instance.userData === undefined ? undefined : Buffer.from(instance.userData, 'base64').toString('utf8'),
    keyPublic: key?.publicKey,
    privateIp: instance.privateIp,
    tags: Object.fromEntries(visibleTags(instance, Number.POSITIVE_INFINITY)),
    diskGb: region.volumes.get(instance.volumeIds[0] ?? '')?.sizeGb ?? 0,
    instanceProfileArn: instance.instanceProfileArn,
  };
}

/** Notifies the machine backend without waiting for its result. */
function reportBackendError(ec2: Ec2, instance: InstanceRecord, work: Promise<void> | undefined): void {
  work?.catch((error: unknown) => ec2.emulation.problem(`the machine of ${instance.id} could not be changed: ${String(error)}`));
}

/**
 * Terminates an instance: its address at once, its disks and its listing later. Has no effect on an instance that is
 * ending.
 */
export function terminate(
  ec2: Ec2,
  instance: InstanceRecord,
  reason: StateReason,
  hadMachine = instance.state !== 'pending' || ec2.machineBackend !== undefined,
): void {
  if (instance.state === 'terminated' || instance.state === 'shutting-down') return;
  beginStopping(instance, 'shutting-down', reason);
  instance.stateTransitionReason = reason === userShutdown ? `User initiated (${stamp(ec2.now)})` : (reason.Message ?? '');
  if (hadMachine) reportBackendError(ec2, instance, ec2.machineBackend?.terminate(instance.id));
  const request = requestOf(ec2, instance);
  if (request !== undefined && request.state === 'active') {
    const byService = reason.Code === spotTermination.Code;
    const [code, message] = byService
      ? [
          'instance-terminated-no-capacity',
          'Your Spot instance was terminated because there is no Spot capacity available that matches your request.',
        ]
      : ['instance-terminated-by-user', 'Spot instance terminated due to user-initiated termination.'];
    setRequest(request, 'closed', code, message, ec2.now);
  }
  const { epoch } = instance;
  ec2.emulation.timers.after(ec2.pick(ec2.emulation.timing.shuttingDownMs), () => {
    if (instance.epoch === epoch) finishTermination(ec2, ec2.region(instance.region), instance);
  });
}

function beginStopping(instance: InstanceRecord, state: 'shutting-down' | 'stopping', reason: StateReason): void {
  instance.epoch += 1;
  instance.state = state;
  instance.stateReason = reason;
  instance.publicIp = undefined;
}

function finishTermination(ec2: Ec2, region: Ec2Region, instance: InstanceRecord): void {
  instance.state = 'terminated';
  instance.terminatedAt = ec2.now;
  for (const id of instance.volumeIds) {
    const volume = region.volumes.get(id);
    if (volume?.attachment?.deleteOnTermination === true) region.volumes.delete(id);
    else if (volume !== undefined) volume.attachment = undefined;
  }
  instance.volumeIds.length = 0;
}

/** Stops an instance that runs or is about to; its disks and its id stay. */
export function stop(ec2: Ec2, instance: InstanceRecord, reason = userShutdown): void {
  beginStopping(instance, 'stopping', reason);
  instance.stateTransitionReason = `User initiated (${stamp(ec2.now)})`;
  reportBackendError(ec2, instance, ec2.machineBackend?.stop(instance.id));
  const { epoch } = instance;
  ec2.emulation.timers.after(ec2.pick(ec2.emulation.timing.stoppingMs), () => {
    if (instance.epoch === epoch) instance.state = 'stopped';
  });
}

/** Starts a stopped instance, with a new public address. */
export function start(ec2: Ec2, instance: InstanceRecord): void {
  instance.epoch += 1;
  instance.state = 'pending';
  instance.stateReason = undefined;
  instance.stateTransitionReason = '';
  instance.launchedAt = ec2.now;
  comeUp(ec2, instance, false);
}

/** Returns the spot request of an instance. */
export function requestOf(ec2: Ec2, instance: InstanceRecord): SpotRequestRecord | undefined {
  return instance.spotRequestId === undefined ? undefined : ec2.region(instance.region).spotRequests.get(instance.spotRequestId);
}

/** Changes a spot request's state and the status that explains it. */
export function setRequest(
  request: SpotRequestRecord,
  state: SpotRequestRecord['state'],
  code: string,
  message: string,
  now: number,
): void {
  Object.assign(request, { state, statusCode: code, statusMessage: message, statusAt: now });
}

/** AWS sends an interruption notice for a spot instance, and reclaims it two minutes later. */
export function interrupt(ec2: Ec2, instance: InstanceRecord): void {
  const request = requestOf(ec2, instance);
  if (request?.interruption !== 'terminate') throw new Error(`${instance.id} is no spot instance that is terminated when AWS takes it`);
  const at = ec2.now + ec2.emulation.timing.noticeMs;
  instance.interruptionAt = at;
  setRequest(request, 'active', 'marked-for-termination', 'Your Spot instance is marked for termination.', ec2.now);
  ec2.machineBackend?.notice?.(instance.id, { kind: 'interruption', at });
  ec2.emulation.timers.after(ec2.emulation.timing.noticeMs, () => terminate(ec2, instance, spotTermination));
}

/** AWS sends a rebalance recommendation for an instance; it has no other effect. */
export function recommendRebalance(ec2: Ec2, instance: InstanceRecord): void {
  instance.rebalanceAt = ec2.now;
  ec2.machineBackend?.notice?.(instance.id, { kind: 'rebalance', at: ec2.now });
}
