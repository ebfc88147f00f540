import { EC2Client, type RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { IAMClient } from '@aws-sdk/client-iam';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SSMClient } from '@aws-sdk/client-ssm';
import { STSClient } from '@aws-sdk/client-sts';
import { imageData, imageId } from './ec2/image-data.ts';
import { startFakeAws, type FakeAws, type FakeAwsOptions } from './fake-aws.ts';

/** The official clients, for any region, without retries. */
export interface Clients {
  readonly ec2: EC2Client;
  readonly iam: IAMClient;
  readonly s3: S3Client;
  readonly ssm: SSMClient;
  readonly sts: STSClient;
  readonly quotas: ServiceQuotasClient;
}

type Settings = Partial<FakeAws['clientConfig']> & { readonly maxAttempts?: number };

/** Clients of an emulator; `close` destroys them. */
export function clientsOf(aws: FakeAws, settings: Settings = {}): Clients & { readonly close: () => void } {
  const config = { maxAttempts: 1, ...aws.clientConfig, ...settings };
  const clients = {
    ec2: new EC2Client(config),
    iam: new IAMClient(config),
    s3: new S3Client(config),
    ssm: new SSMClient(config),
    sts: new STSClient(config),
    quotas: new ServiceQuotasClient(config),
  };
  return { ...clients, close: () => Object.values(clients).forEach((client) => client.destroy()) };
}

/** Runs a test against a new emulator, and fails when a call was not emulated. */
export async function withFakeAws(options: FakeAwsOptions, test: (aws: FakeAws, clients: Clients) => Promise<void>): Promise<void> {
  const aws = await startFakeAws(options);
  const clients = clientsOf(aws);
  try {
    await test(aws, clients);
  } catch (error) {
    aws.takeProblems();
    throw error;
  } finally {
    clients.close();
    await aws.close();
  }
}

/** The same for S3 alone, with a bucket in us-east-1. */
export async function withFakeBucket(name: string, test: (aws: FakeAws, s3: S3Client) => Promise<void>): Promise<void> {
  await withFakeAws({}, async (aws, { s3 }) => {
    await s3.send(new CreateBucketCommand({ Bucket: name }));
    await test(aws, s3);
  });
}

/** Returns the code and status of a refused call, such as `InvalidGroup.Duplicate 400`; `ok` when it succeeded. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'ok';
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const status = '$response' in error || '$metadata' in error ? statusOf(error) : '';
    return `${error.name} ${status}`.trim();
  }
}

function statusOf(error: Error): string {
  const metadata: unknown = '$metadata' in error ? error.$metadata : undefined;
  const known = typeof metadata === 'object' && metadata !== null && 'httpStatusCode' in metadata;
  return known ? String(metadata.httpStatusCode) : '';
}

/** Returns an Ubuntu image for a region and an architecture. */
export function ubuntuIn(region: string, architecture: 'x86_64' | 'arm64' = 'x86_64'): string {
  const image = imageData.find((one) => one.name.includes('noble') && one.architecture === architecture);
  return image === undefined ? '' : imageId(image, region);
}

/** Parameters that launch one small machine in us-east-1. */
export function aLaunch(more: Partial<RunInstancesCommandInput> = {}): RunInstancesCommandInput {
  return { ImageId: ubuntuIn('us-east-1'), InstanceType: 't3.micro', MinCount: 1, MaxCount: 1, ...more };
}
