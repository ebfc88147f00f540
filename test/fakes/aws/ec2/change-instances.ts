import type {
  GetConsoleOutputRequest,
  GetConsoleOutputResult,
  InstanceStateChange,
  StartInstancesRequest,
  StartInstancesResult,
  StopInstancesRequest,
  StopInstancesResult,
  TerminateInstancesRequest,
  TerminateInstancesResult,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import { instancesById, shownState } from './describe-instances.ts';
import type { Ec2 } from './ec2.ts';
import { requestOf, start, stop, terminate, userShutdown } from './instance-life.ts';
import type { InstanceRecord } from './records.ts';

function dryRun(input: { readonly DryRun?: boolean | undefined }): void {
  if (input.DryRun === true) throw new ApiError('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412);
}

/** Validates all ids before any change: one wrong id changes nothing. */
function change(instances: readonly InstanceRecord[], act: (instance: InstanceRecord) => void): InstanceStateChange[] {
  return [...new Set(instances)].map((instance) => {
    const before = shownState(instance.state);
    act(instance);
    return { InstanceId: instance.id, PreviousState: before, CurrentState: shownState(instance.state) };
  });
}

/** Succeeds for terminated instances while they are still listed. */
export function terminateInstances(ec2: Ec2, input: TerminateInstancesRequest, { region }: Caller): TerminateInstancesResult {
  const instances = instancesById(ec2, ec2.region(region), input.InstanceIds ?? []);
  dryRun(input);
  return { TerminatingInstances: change(instances, (instance) => terminate(ec2, instance, userShutdown)) };
}

function stoppable({ state }: InstanceRecord): boolean {
  return state === 'running' || state === 'pending';
}

/** Refused for spot instances that cannot be started again. */
export function stopInstances(ec2: Ec2, input: StopInstancesRequest, { region }: Caller): StopInstancesResult {
  const instances = instancesById(ec2, ec2.region(region), input.InstanceIds ?? []);
  for (const instance of instances) {
    if (instance.state === 'terminated' || instance.state === 'shutting-down') {
      throw new ApiError('IncorrectInstanceState', `This instance '${instance.id}' is not in a state from which it can be stopped.`, 400);
    }
    if (requestOf(ec2, instance)?.type === 'one-time') {
      throw new ApiError(
        'UnsupportedOperation',
        `You can't stop the Spot Instance '${instance.id}' because it is associated with a one-time Spot Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.`,
        400,
      );
    }
  }
  dryRun(input);
  return { StoppingInstances: change(instances, (instance) => void (stoppable(instance) && stop(ec2, instance))) };
}

/** Needs capacity and quota again, like a launch. */
export function startInstances(ec2: Ec2, input: StartInstancesRequest, { region: name }: Caller): StartInstancesResult {
  const region = ec2.region(name);
  const instances = instancesById(ec2, region, input.InstanceIds ?? []);
  for (const instance of instances) {
    if (instance.state !== 'stopped' && instance.state !== 'running' && instance.state !== 'pending') {
      throw new ApiError('IncorrectInstanceState', `The instance '${instance.id}' is not in a state from which it can be started.`, 400);
    }
    if (instance.state !== 'stopped') continue;
    const { type, zone } = instance;
    const spot = instance.spotRequestId !== undefined;
    const circumstances = { service: 'ec2', action: 'StartInstances', region: name, instanceType: type.name, spot } as const;
    ec2.emulation.conduct.checkPlacement(circumstances);
    ec2.emulation.conduct.checkPlacement({ ...circumstances, zone });
    const requested = { region: name, zone, type, spot, maxPrice: undefined };
    const others = region.living.filter((one) => one !== instance && one.state !== 'stopped');
    ec2.supply.checkQuota(requested, others);
    ec2.supply.checkZone(requested, others, region.zones);
  }
  dryRun(input);
  return { StartingInstances: change(instances, (instance) => void (instance.state === 'stopped' && start(ec2, instance))) };
}

/** Some lines, base64. */
export function getConsoleOutput(ec2: Ec2, input: GetConsoleOutputRequest, { region }: Caller): GetConsoleOutputResult {
  const [instance] = instancesById(ec2, ec2.region(region), [input.InstanceId ?? '']);
  if (instance === undefined) return {};
  void input.Latest;
  const text = instance.state === 'pending' ? '' : `[    0.000000] Linux version\n${instance.id} login: \n`;
  return { InstanceId: instance.id, Timestamp: new Date(instance.launchedAt), Output: Buffer.from(text).toString('base64') };
}
