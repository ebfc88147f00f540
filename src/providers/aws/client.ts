import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  DeleteKeyPairCommand,
  DeleteSecurityGroupCommand,
  DeleteVolumeCommand,
  DescribeImagesCommand,
  DescribeInstancesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSpotInstanceRequestsCommand,
  DescribeSubnetsCommand,
  DescribeVolumesCommand,
  DescribeVpcsCommand,
  EC2Client,
  ImportKeyPairCommand,
  RevokeSecurityGroupIngressCommand,
  RunInstancesCommand,
  StartInstancesCommand,
  StopInstancesCommand,
  TerminateInstancesCommand,
  type AuthorizeSecurityGroupIngressCommandInput,
  type CreateSecurityGroupCommandInput,
  type DescribeImagesCommandInput,
  type Filter,
  type Image,
  type ImportKeyPairCommandInput,
  type Instance,
  type RevokeSecurityGroupIngressCommandInput,
  type RunInstancesCommandInput,
  type SecurityGroup,
  type SpotInstanceRequest,
  type Subnet,
  type Volume,
  type Vpc,
  type _InstanceType,
} from '@aws-sdk/client-ec2';
import {
  AddRoleToInstanceProfileCommand,
  CreateInstanceProfileCommand,
  CreateRoleCommand,
  DeleteInstanceProfileCommand,
  DeleteRoleCommand,
  DeleteRolePolicyCommand,
  IAMClient,
  PutRolePolicyCommand,
  RemoveRoleFromInstanceProfileCommand,
  type CreateRoleCommandInput,
} from '@aws-sdk/client-iam';
import { GetServiceQuotaCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { GetParametersCommand, SSMClient } from '@aws-sdk/client-ssm';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import type { Fence } from '../../shared/fence.ts';

export type {
  Filter,
  Image as AwsImage,
  Instance,
  IpPermission,
  SecurityGroup,
  SpotInstanceRequest,
  Subnet,
  Vpc,
} from '@aws-sdk/client-ec2';

/** AWS access keys. Secrets. */
export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
  /** ms since the epoch; undefined: never. */
  readonly expiresAt: number | undefined;
}

/** Allows instance types that the SDK does not know. */
export type LaunchRequest = Omit<RunInstancesCommandInput, 'InstanceType'> & { readonly InstanceType: string };

/** The SDK's type has the types of its release; the catalogue and AWS know newer ones. */
function isInstanceType(name: string): name is _InstanceType {
  return name !== '';
}

/** ms. AWS answers within one or two seconds, even around the world. */
const timeouts = { connectionTimeout: 5_000, requestTimeout: 15_000, throwOnRequestTimeout: true };

/** With the SDK's exponential backoff: about ten seconds of throttling. */
const attempts = 5;

/** The maximum of items per page that all actions used here accept. */
const pageSize = 500;

/** EC2 calls in one region. Lists contain all pages. Errors are AWS's own. */
export type Ec2 = ReturnType<AwsClients['ec2']>;
/** IAM calls; IAM has no regions. */
export type Iam = ReturnType<AwsClients['iam']>;

/**
 * The AWS SDK for one profile, with one client per region. It retries calls where that is safe and useful, but not
 * `runInstances`: AWS reports a capacity shortage as a server error, which the SDK would retry repeatedly.
 */
export class AwsClients {
  readonly #ec2: (region: string) => EC2Client;
  readonly #ec2Once: (region: string) => EC2Client;
  readonly #ssm: (region: string) => SSMClient;
  readonly #sts: (region: string) => STSClient;
  readonly #iam: (region: string) => IAMClient;
  readonly #quotas: (region: string) => ServiceQuotasClient;

  constructor(profile: string | undefined, fence: Fence) {
    const made = <C extends FencedStack>(make: (region: string) => C) => madeOnce((region) => fencedClient(make(region), fence));
    // `ignoreCache`: the SDK must read the user's files again, even if it read them for other clients.
    const common = { retryMode: 'standard', requestHandler: timeouts, ignoreCache: true, ...(profile === undefined ? {} : { profile }) };
    this.#ec2 = made((region) => new EC2Client({ ...common, region, maxAttempts: attempts }));
    this.#ec2Once = made((region) => new EC2Client({ ...common, region, maxAttempts: 1 }));
    this.#ssm = made((region) => new SSMClient({ ...common, region, maxAttempts: attempts }));
    // A user waits for the answer.
    this.#sts = made((region) => new STSClient({ ...common, region, maxAttempts: 2 }));
    this.#quotas = made((region) => new ServiceQuotasClient({ ...common, region, maxAttempts: 2 }));
    this.#iam = made((region) => new IAMClient({ ...common, region, maxAttempts: attempts }));
  }

  ec2(region: string, signal: AbortSignal | undefined) {
    const options = signalOption(signal);
    const client = this.#ec2(region);
    const once = this.#ec2Once(region);
    return {
      instances: (Filters: Filter[]): Promise<Instance[]> =>
        allPages(
          (token) => client.send(new DescribeInstancesCommand({ Filters, ...page(token) }), options),
          ({ Reservations }) => Reservations?.flatMap(({ Instances }) => Instances ?? []),
        ),
      spotRequests: (Filters: Filter[]): Promise<SpotInstanceRequest[]> =>
        allPages(
          (token) => client.send(new DescribeSpotInstanceRequestsCommand({ Filters, ...page(token) }), options),
          ({ SpotInstanceRequests }) => SpotInstanceRequests,
        ),
      securityGroups: (Filters: Filter[]): Promise<SecurityGroup[]> =>
        allPages(
          (token) => client.send(new DescribeSecurityGroupsCommand({ Filters, ...page(token) }), options),
          ({ SecurityGroups }) => SecurityGroups,
        ),
      vpcs: (Filters: Filter[]): Promise<Vpc[]> =>
        allPages(
          (token) => client.send(new DescribeVpcsCommand({ Filters, ...page(token) }), options),
          ({ Vpcs }) => Vpcs,
        ),
      subnets: (Filters: Filter[]): Promise<Subnet[]> =>
        allPages(
          (token) => client.send(new DescribeSubnetsCommand({ Filters, ...page(token) }), options),
          ({ Subnets }) => Subnets,
        ),
      volumes: (Filters: Filter[]): Promise<Volume[]> =>
        allPages(
          (token) => client.send(new DescribeVolumesCommand({ Filters, ...page(token) }), options),
          ({ Volumes }) => Volumes,
        ),
      // AWS rejects a page size together with a list of ids.
      images: (input: DescribeImagesCommandInput): Promise<Image[]> =>
        allPages(
          (NextToken) => client.send(new DescribeImagesCommand({ ...input, ...(NextToken === undefined ? {} : { NextToken }) }), options),
          ({ Images }) => Images,
        ),
      runInstances: async ({ InstanceType, ...input }: LaunchRequest): Promise<Instance | undefined> => {
        if (!isInstanceType(InstanceType)) throw new Error('an instance type is never empty');
        return (await once.send(new RunInstancesCommand({ ...input, InstanceType }), options)).Instances?.[0];
      },
      terminate: (id: string) => client.send(new TerminateInstancesCommand({ InstanceIds: [id] }), options),
      stop: (id: string) => client.send(new StopInstancesCommand({ InstanceIds: [id] }), options),
      start: (id: string) => once.send(new StartInstancesCommand({ InstanceIds: [id] }), options),
      createSecurityGroup: async (input: CreateSecurityGroupCommandInput): Promise<string | undefined> =>
        (await client.send(new CreateSecurityGroupCommand(input), options)).GroupId,
      authorizeIngress: (input: AuthorizeSecurityGroupIngressCommandInput) =>
        client.send(new AuthorizeSecurityGroupIngressCommand(input), options),
      revokeIngress: (input: RevokeSecurityGroupIngressCommandInput) => client.send(new RevokeSecurityGroupIngressCommand(input), options),
      deleteSecurityGroup: (GroupId: string) => client.send(new DeleteSecurityGroupCommand({ GroupId }), options),
      importKeyPair: (input: ImportKeyPairCommandInput) => client.send(new ImportKeyPairCommand(input), options),
      deleteKeyPair: (KeyName: string) => client.send(new DeleteKeyPairCommand({ KeyName }), options),
      deleteVolume: (VolumeId: string) => client.send(new DeleteVolumeCommand({ VolumeId }), options),
    };
  }

  /** By name; parameters that do not exist are omitted. */
  async parameters(region: string, Names: string[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, string>> {
    const { Parameters = [] } = await this.#ssm(region).send(new GetParametersCommand({ Names }), signalOption(signal));
    return new Map(Parameters.flatMap(({ Name, Value }) => (Name === undefined || Value === undefined ? [] : [[Name, Value] as const])));
  }

  async callerIdentity(region: string, signal: AbortSignal | undefined): Promise<{ readonly account: string; readonly arn: string }> {
    const { Account = '?', Arn = '?' } = await this.#sts(region).send(new GetCallerIdentityCommand({}), signalOption(signal));
    return { account: Account, arn: Arn };
  }

  /** Undefined when AWS does not report the quota. */
  async quota(region: string, QuotaCode: string, signal: AbortSignal | undefined): Promise<number | undefined> {
    return (await this.#quotas(region).send(new GetServiceQuotaCommand({ ServiceCode: 'ec2', QuotaCode }), signalOption(signal))).Quota
      ?.Value;
  }

  /** For a remote controller without credentials of its own. */
  async credentials(region: string): Promise<AwsKeys> {
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await this.#sts(region).config.credentials();
    return { accessKeyId, secretAccessKey, sessionToken, expiresAt: expiration?.getTime() };
  }

  iam(region: string, signal: AbortSignal | undefined) {
    const options = signalOption(signal);
    const client = this.#iam(region);
    return {
      createRole: (input: CreateRoleCommandInput) => client.send(new CreateRoleCommand(input), options),
      putRolePolicy: (RoleName: string, PolicyName: string, PolicyDocument: string) =>
        client.send(new PutRolePolicyCommand({ RoleName, PolicyName, PolicyDocument }), options),
      createInstanceProfile: (InstanceProfileName: string, Tags: { Key: string; Value: string }[]) =>
        client.send(new CreateInstanceProfileCommand({ InstanceProfileName, Tags }), options),
      addRoleToInstanceProfile: (InstanceProfileName: string, RoleName: string) =>
        client.send(new AddRoleToInstanceProfileCommand({ InstanceProfileName, RoleName }), options),
      removeRoleFromInstanceProfile: (InstanceProfileName: string, RoleName: string) =>
        client.send(new RemoveRoleFromInstanceProfileCommand({ InstanceProfileName, RoleName }), options),
      deleteInstanceProfile: (InstanceProfileName: string) =>
        client.send(new DeleteInstanceProfileCommand({ InstanceProfileName }), options),
      deleteRolePolicy: (RoleName: string, PolicyName: string) =>
        client.send(new DeleteRolePolicyCommand({ RoleName, PolicyName }), options),
      deleteRole: (RoleName: string) => client.send(new DeleteRoleCommand({ RoleName }), options),
    };
  }
}

/** Each attempt of a request is sent only if the fence permits it. */
function fencedClient<C extends FencedStack>(client: C, fence: Fence): C {
  const check =
    <Args, Output>(next: (args: Args) => Promise<Output>) =>
    (args: Args): Promise<Output> => {
      fence.check();
      return next(args);
    };
  client.middlewareStack.add(check, { step: 'deserialize', priority: 'low', name: 'fence' });
  return client;
}

interface FencedStack {
  readonly middlewareStack: {
    add(
      check: <Args, Output>(next: (args: Args) => Promise<Output>) => (args: Args) => Promise<Output>,
      options: { step: 'deserialize'; priority: 'low'; name: string },
    ): void;
  };
}

function madeOnce<C>(make: (region: string) => C): (region: string) => C {
  const made = new Map<string, C>();
  return (region) => {
    const client = made.get(region) ?? make(region);
    made.set(region, client);
    return client;
  };
}

const page = (NextToken: string | undefined): { MaxResults: number; NextToken?: string } => ({
  MaxResults: pageSize,
  ...(NextToken === undefined ? {} : { NextToken }),
});

const signalOption = (abortSignal: AbortSignal | undefined): { abortSignal?: AbortSignal } =>
  abortSignal === undefined ? {} : { abortSignal };

async function allPages<P extends { NextToken?: string | undefined }, T>(
  ask: (token: string | undefined) => Promise<P>,
  itemsOf: (reply: P) => T[] | undefined,
): Promise<T[]> {
  const items: T[] = [];
  let token: string | undefined;
  do {
    const reply = await ask(token);
    items.push(...(itemsOf(reply) ?? []));
    token = reply.NextToken === '' ? undefined : reply.NextToken;
  } while (token !== undefined);
  return items;
}
