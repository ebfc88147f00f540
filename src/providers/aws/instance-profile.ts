import { fingerprint } from '../../shared/hex.ts';
import type { Iam } from './client.ts';
import { hasAwsCode } from './errors.ts';
import { ownTags, sharedTags } from '../vm/tags.ts';
import { tagList } from './tags.ts';

const policyName = 'svc';

function controllerRoleName(owner: string): string {
  return `${rolePrefix}${fingerprint(owner)}`;
}

/** A controller with this role launches replicas without keys. Safe to repeat after a crash at any step. */
export async function ensureControllerRole(iam: Iam, home: string, owner: string): Promise<string> {
  const name = controllerRoleName(owner);
  const Tags = tagList(sharedTags(home, owner));
  const AssumeRolePolicyDocument = JSON.stringify(controllerTrust);
  await unless('EntityAlreadyExists', () => iam.createRole({ RoleName: name, AssumeRolePolicyDocument, Tags }));
  await iam.putRolePolicy(name, policyName, JSON.stringify(controllerPolicy));
  await unless('EntityAlreadyExists', () => iam.createInstanceProfile(name, Tags));
  // An instance profile holds one role. Adding the same role again fails too.
  await unless('LimitExceeded', () => iam.addRoleToInstanceProfile(name, name));
  return name;
}

/** IAM allows only this order. */
export async function removeControllerRole(iam: Iam, owner: string): Promise<void> {
  const name = controllerRoleName(owner);
  await unless('NoSuchEntity', () => iam.removeRoleFromInstanceProfile(name, name));
  await unless('NoSuchEntity', () => iam.deleteInstanceProfile(name));
  await unless('NoSuchEntity', () => iam.deleteRolePolicy(name, policyName));
  await unless('NoSuchEntity', () => iam.deleteRole(name));
}

async function unless(code: string, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    // The SDK's names of some IAM errors end with "Exception"; the service's codes do not.
    if (!hasAwsCode(error, code, `${code}Exception`)) throw error;
  }
}

interface PolicyStatement {
  readonly Sid: string;
  readonly Effect: 'Allow';
  readonly Action: readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;
}

interface Policy {
  readonly Version: '2012-10-17';
  readonly Statement: readonly PolicyStatement[];
}

const ourOwn = { Null: { [`aws:ResourceTag/${ownTags.home}`]: 'false' } };

/** EC2 has no finer rights for reading. The rights to change and remove apply only to svc's resources. */
const replicaStatements: readonly PolicyStatement[] = [
  {
    Sid: 'Look',
    Effect: 'Allow',
    Action: [
      'ec2:DescribeImages',
      'ec2:DescribeInstances',
      'ec2:DescribeSecurityGroups',
      'ec2:DescribeSpotInstanceRequests',
      'ec2:DescribeSubnets',
      'ec2:DescribeVolumes',
      'ec2:DescribeVpcs',
      'servicequotas:GetServiceQuota',
    ],
    Resource: '*',
  },
  {
    Sid: 'FindImages',
    Effect: 'Allow',
    Action: ['ssm:GetParameters'],
    Resource: ['arn:aws:ssm:*::parameter/aws/service/canonical/*', 'arn:aws:ssm:*::parameter/aws/service/deeplearning/*'],
  },
  {
    Sid: 'Make',
    Effect: 'Allow',
    // AWS requires CreateTags for requests that tag what they create. On its own it stays denied.
    Action: ['ec2:RunInstances', 'ec2:CreateSecurityGroup', 'ec2:ImportKeyPair'],
    Resource: '*',
  },
  {
    Sid: 'TagWhatIsMade',
    Effect: 'Allow',
    Action: ['ec2:CreateTags'],
    Resource: '*',
    Condition: { StringEquals: { 'ec2:CreateAction': ['RunInstances', 'CreateSecurityGroup', 'ImportKeyPair'] } },
  },
  {
    Sid: 'ChangeAndRemoveOurOwn',
    Effect: 'Allow',
    Action: [
      'ec2:AuthorizeSecurityGroupIngress',
      'ec2:DeleteKeyPair',
      'ec2:DeleteSecurityGroup',
      'ec2:DeleteVolume',
      'ec2:RevokeSecurityGroupIngress',
      'ec2:StartInstances',
      'ec2:StopInstances',
      'ec2:TerminateInstances',
    ],
    Resource: '*',
    Condition: ourOwn,
  },
  {
    Sid: 'SpotForTheFirstTime',
    Effect: 'Allow',
    Action: ['iam:CreateServiceLinkedRole'],
    Resource: 'arn:aws:iam::*:role/aws-service-role/spot.amazonaws.com/*',
    Condition: { StringEquals: { 'iam:AWSServiceName': 'spot.amazonaws.com' } },
  },
];

const bucketStatements: readonly PolicyStatement[] = [
  {
    Sid: 'BucketsForFiles',
    Effect: 'Allow',
    Action: [
      's3:CreateBucket',
      's3:DeleteBucket',
      's3:ListBucket',
      's3:ListBucketMultipartUploads',
      's3:PutBucketPublicAccessBlock',
      's3:PutBucketTagging',
      's3:PutLifecycleConfiguration',
      's3:GetObject',
      's3:PutObject',
      's3:DeleteObject',
      's3:AbortMultipartUpload',
      's3:ListMultipartUploadParts',
    ],
    Resource: ['arn:aws:s3:::svc-*', 'arn:aws:s3:::svc-*/*'],
  },
];

/** Rights of a controller on AWS, granted by its instance role. */
export const controllerPolicy: Policy = { Version: '2012-10-17', Statement: [...replicaStatements, ...bucketStatements] };

const controllerTrust = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'ec2.amazonaws.com' }, Action: 'sts:AssumeRole' }],
} as const;

const rolePrefix = 'svc-controller-';

const roleStatements: readonly PolicyStatement[] = [
  {
    Sid: 'RoleOfTheController',
    Effect: 'Allow',
    Action: [
      'iam:AddRoleToInstanceProfile',
      'iam:CreateInstanceProfile',
      'iam:CreateRole',
      'iam:DeleteInstanceProfile',
      'iam:DeleteRole',
      'iam:DeleteRolePolicy',
      'iam:PassRole',
      'iam:PutRolePolicy',
      'iam:RemoveRoleFromInstanceProfile',
      'iam:TagInstanceProfile',
      'iam:TagRole',
    ],
    Resource: [`arn:aws:iam::*:role/${rolePrefix}*`, `arn:aws:iam::*:instance-profile/${rolePrefix}*`],
  },
];

/** The policy in docs/clouds/aws.md: all rights of a user who also lets svc create roles. */
export const userPolicy: Policy = { Version: '2012-10-17', Statement: [...controllerPolicy.Statement, ...roleStatements] };

/** AWS checks these rights although svc sends no such request. */
export const impliedActions: readonly string[] = ['iam:CreateServiceLinkedRole'];
