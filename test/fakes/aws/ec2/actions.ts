import * as sdk from '@aws-sdk/client-ec2';
import type { StaticOperationSchema } from '@smithy/types';
import { action, type Action, type Caller } from '../core/action.ts';
import * as catalogue from './catalogue.ts';
import * as changes from './change-instances.ts';
import * as rules from './change-rules.ts';
import * as instances from './describe-instances.ts';
import type { Ec2 } from './ec2.ts';
import * as groups from './groups.ts';
import * as keys from './keys.ts';
import * as network from './network.ts';
import { runInstances } from './run-instances.ts';
import * as spot from './spot.ts';
import * as tagging from './tagging.ts';
import * as volumes from './volumes.ts';
import { ApiError } from '../wire/api-error.ts';

interface Row {
  run(ec2: Ec2, input: object, caller: Caller): object;
}

/** Actions that evaluate DryRun themselves, because its position among their checks matters. */
const checkThemselves: ReadonlySet<string> = new Set(['RunInstances', 'TerminateInstances', 'StopInstances', 'StartInstances']);

/** All emulated actions of EC2. */
export function ec2Actions(ec2: Ec2, disabled: ReadonlySet<string>): readonly Action[] {
  function row(operation: StaticOperationSchema, run: Row['run']): Action {
    return action(operation, (input, caller) => {
      const dry = 'DryRun' in input && input.DryRun === true;
      if (dry && !checkThemselves.has(operation[2]))
        throw new ApiError('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412);
      return run(ec2, input, caller);
    });
  }
  return [
    row(sdk.RunInstances$, runInstances),
    row(sdk.DescribeInstances$, instances.describeInstances),
    row(sdk.DescribeInstanceStatus$, instances.describeInstanceStatus),
    row(sdk.TerminateInstances$, changes.terminateInstances),
    row(sdk.StopInstances$, changes.stopInstances),
    row(sdk.StartInstances$, changes.startInstances),
    row(sdk.GetConsoleOutput$, changes.getConsoleOutput),
    row(sdk.DescribeSpotInstanceRequests$, spot.describeSpotInstanceRequests),
    row(sdk.CancelSpotInstanceRequests$, spot.cancelSpotInstanceRequests),
    row(sdk.DescribeSpotPriceHistory$, spot.describeSpotPriceHistory),
    row(sdk.CreateTags$, tagging.createTags),
    row(sdk.DeleteTags$, tagging.deleteTags),
    row(sdk.DescribeImages$, catalogue.describeImages),
    row(sdk.DescribeInstanceTypes$, catalogue.describeInstanceTypes),
    row(sdk.DescribeInstanceTypeOfferings$, catalogue.describeInstanceTypeOfferings),
    row(sdk.DescribeRegions$, (_ec2, input: sdk.DescribeRegionsRequest) => catalogue.describeRegions(ec2, input, disabled)),
    row(sdk.DescribeAvailabilityZones$, catalogue.describeAvailabilityZones),
    row(sdk.DescribeVpcs$, network.describeVpcs),
    row(sdk.DescribeSubnets$, network.describeSubnets),
    row(sdk.DescribeNetworkInterfaces$, network.describeNetworkInterfaces),
    row(sdk.CreateSecurityGroup$, groups.createSecurityGroup),
    row(sdk.DeleteSecurityGroup$, groups.deleteSecurityGroup),
    row(sdk.DescribeSecurityGroups$, groups.describeSecurityGroups),
    row(sdk.DescribeSecurityGroupRules$, rules.describeRules),
    row(sdk.AuthorizeSecurityGroupIngress$, rules.authorizeIngress),
    row(sdk.AuthorizeSecurityGroupEgress$, rules.authorizeEgress),
    row(sdk.RevokeSecurityGroupIngress$, rules.revokeIngress),
    row(sdk.RevokeSecurityGroupEgress$, rules.revokeEgress),
    row(sdk.ImportKeyPair$, keys.importKeyPair),
    row(sdk.DescribeKeyPairs$, keys.describeKeyPairs),
    row(sdk.DeleteKeyPair$, keys.deleteKeyPair),
    row(sdk.DescribeVolumes$, volumes.describeVolumes),
    row(sdk.DeleteVolume$, volumes.deleteVolume),
  ];
}
