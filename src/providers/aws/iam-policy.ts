import { ownTags } from './tags.ts';

/** One statement of a policy. */
export interface PolicyStatement {
  readonly Sid: string;
  readonly Effect: 'Allow';
  readonly Action: readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;
}

/** A policy of IAM. */
export interface Policy {
  readonly Version: '2012-10-17';
  readonly Statement: readonly PolicyStatement[];
}

const ourOwn = { Null: { [`aws:ResourceTag/${ownTags.home}`]: 'false' } };

/** What replicas need. Reading EC2 knows no finer rights; what changes or removes something holds for what `svc` made. */
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
    // CreateTags is asked for by requests that tag what they make; on its own it is allowed nowhere.
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

/** What the buckets for a service's files need. */
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

/** What a controller on AWS may do, as its instance role says. */
export const controllerPolicy: Policy = { Version: '2012-10-17', Statement: [...replicaStatements, ...bucketStatements] };

/** Who may take the role. */
export const controllerTrust = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'ec2.amazonaws.com' }, Action: 'sts:AssumeRole' }],
} as const;

/** Roles and profiles that are made for controllers begin with it. */
export const rolePrefix = 'svc-controller-';

/** Beyond that: a controller on AWS for which a role is made. */
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

/** Everything that a user needs who also lets a role be made: the policy of docs/clouds/aws.md. */
export const userPolicy: Policy = { Version: '2012-10-17', Statement: [...controllerPolicy.Statement, ...roleStatements] };

/** Rights that AWS checks although no request of ours bears their name. */
export const impliedActions: readonly string[] = ['iam:CreateServiceLinkedRole'];
