import type { ServiceName } from './conduct.ts';

/** A received call, whether or not it was allowed or executed. */
export interface RecordedCall {
  readonly service: ServiceName;
  readonly action: string;
  readonly region: string;
  readonly accessKeyId: string | undefined;
  /** The permissions that an IAM policy must grant for it, such as `ec2:RunInstances` and `ec2:CreateTags`. */
  readonly permissions: readonly string[];
  /** Ms since the epoch on the emulator's clock. */
  readonly at: number;
  /** `ok`, the code of the error, or the fault of the connection. */
  outcome: string;
}

/** Actions that need a permission of another name. https://docs.aws.amazon.com/service-authorization/latest/reference/ */
const renamed: Readonly<Record<string, readonly string[]>> = {
  's3:ListObjectsV2': ['s3:ListBucket'],
  's3:HeadBucket': ['s3:ListBucket'],
  's3:ListBuckets': ['s3:ListAllMyBuckets'],
  's3:HeadObject': ['s3:GetObject'],
  's3:CopyObject': ['s3:GetObject', 's3:PutObject'],
  's3:CreateMultipartUpload': ['s3:PutObject'],
  's3:UploadPart': ['s3:PutObject'],
  's3:CompleteMultipartUpload': ['s3:PutObject'],
  's3:ListParts': ['s3:ListMultipartUploadParts'],
  's3:ListMultipartUploads': ['s3:ListBucketMultipartUploads'],
  's3:DeleteObjects': ['s3:DeleteObject'],
  's3:PutPublicAccessBlock': ['s3:PutBucketPublicAccessBlock'],
  's3:GetPublicAccessBlock': ['s3:GetBucketPublicAccessBlock'],
  's3:PutBucketLifecycleConfiguration': ['s3:PutLifecycleConfiguration'],
  's3:GetBucketLifecycleConfiguration': ['s3:GetLifecycleConfiguration'],
  's3:DeleteBucketTagging': ['s3:PutBucketTagging'],
  'sts:GetCallerIdentity': [],
};

/** Returns the permissions that a call with these parameters needs. */
export function permissionsOf(service: ServiceName, action: string, input: object): readonly string[] {
  const own = renamed[`${service}:${action}`] ?? [`${service}:${action}`];
  const more: string[] = [];
  if (service === 'ec2' && 'TagSpecifications' in input) more.push('ec2:CreateTags');
  if (service === 'ec2' && 'IamInstanceProfile' in input) more.push('iam:PassRole');
  if (service === 'iam' && action === 'AddRoleToInstanceProfile') more.push('iam:PassRole');
  if (service === 'iam' && 'Tags' in input && action.startsWith('Create')) more.push(`iam:Tag${action.slice('Create'.length)}`);
  return [...own, ...more];
}
