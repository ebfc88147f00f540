import { systemClock, type Clock } from '../../../src/shared/clock.ts';
import { seededRandom } from '../../../src/shared/random.ts';
import type { Action } from './core/action.ts';
import type { RecordedCall } from './core/calls.ts';
import { Conduct } from './core/conduct.ts';
import { quickTiming, Timers, type Emulation, type Timing } from './core/emulation.ts';
import { AwsServer } from './core/server.ts';
import { ec2Actions } from './ec2/actions.ts';
import { Ec2 } from './ec2/ec2.ts';
import { instanceTypeData, type InstanceTypeData } from './ec2/instance-type-data.ts';
import { regionData } from './ec2/region-data.ts';
import { Control } from './control.ts';
import { iamActions } from './iam/actions.ts';
import { Iam } from './iam/iam.ts';
import type { MachineHost } from './machine-host.ts';
import { quotaActions } from './quotas/actions.ts';
import { BucketStore } from './s3/buckets.ts';
import { KeyRing } from './sigv4/key-ring.ts';
import { ssmActions } from './ssm/actions.ts';
import { stsActions } from './sts/actions.ts';

/** How an emulator begins; all of it may be left out. */
export interface FakeAwsOptions {
  /** When things happen. Signatures are always checked against the machine's own time, which is what the SDK writes into them. */
  readonly clock?: Clock;
  /** Decides ids, zones, times within their ranges and faults that come with a probability. */
  readonly seed?: number;
  /** Makes instances real machines; without it they are records whose addresses nobody answers at. */
  readonly machines?: MachineHost;
  /** What differs from `quickTiming`. */
  readonly timing?: Partial<Timing>;
  /** Regions on request that the account has enabled; none. */
  readonly enabledRegions?: readonly string[];
  /** Types that exist besides the usual ones. */
  readonly instanceTypes?: readonly InstanceTypeData[];
  /** Where it listens: 127.0.0.1, or an address of a network of the test's own when machines of that are to reach it. */
  readonly address?: string;
}

/** An emulated AWS: one account, all regions, on one port. */
export interface FakeAws {
  /** For AWS_ENDPOINT_URL. */
  readonly endpoint: string;
  /** What makes the official SDKs of a process talk to it, and to nothing else. */
  readonly env: Readonly<Record<string, string>>;
  /** The same for a client in this process. */
  readonly clientConfig: {
    readonly endpoint: string;
    readonly region: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  };
  /** How it behaves beyond doing what it is asked. */
  readonly conduct: Conduct;
  /** What a person in the console, or AWS itself, can do and see. */
  readonly control: Control;
  /** Every call that came, in order of being answered. */
  readonly calls: readonly RecordedCall[];
  /** What came that no faithful answer exists for; `close` fails when there is any. */
  readonly problems: readonly string[];
  /** Forgets problems that a test expected, and returns them. */
  takeProblems(): readonly string[];
  /** Ends it. Fails when something was asked of it that it does not emulate. */
  close(): Promise<void>;
}

const account = '123456789012';
const mainKey = {
  accessKeyId: 'AKIAFAKEAWSFORTESTS1',
  secretAccessKey: 'fake/secret+key/of/the/emulator0123456789',
  account,
  arn: `arn:aws:iam::${account}:user/tester`,
  userId: 'AIDAFAKEAWSFORTESTS1',
};
const homeRegion = 'us-east-1';

function table(actions: readonly Action[]): ReadonlyMap<string, Action> {
  return new Map(actions.map((one) => [one.name, one]));
}

/** Starts an emulated AWS, on loopback unless told otherwise; it must be closed. */
export async function startFakeAws(options: FakeAwsOptions = {}): Promise<FakeAws> {
  const clock = options.clock ?? systemClock;
  const random = seededRandom(options.seed ?? 1);
  const problems: string[] = [];
  const keys = new KeyRing();
  keys.add(mainKey);
  const emulation: Emulation = {
    clock,
    random,
    conduct: new Conduct(clock, random),
    keys,
    account,
    timing: { ...quickTiming, ...options.timing },
    timers: new Timers(clock),
    problem: (text) => void problems.push(text),
  };
  const iam = new Iam(emulation);
  const types = [...instanceTypeData, ...(options.instanceTypes ?? [])];
  const ec2 = new Ec2({ emulation, regions: regionData, types, host: options.machines, profileArn: (name) => iam.profileArn(name) });
  const buckets = new BucketStore();
  const enabled = new Set(options.enabledRegions);
  const disabled = new Set(regionData.filter(({ name, optIn }) => optIn && !enabled.has(name)).map(({ name }) => name));
  const actions = {
    ec2: table(ec2Actions(ec2, disabled)),
    iam: table(iamActions(iam)),
    sts: table(stsActions(emulation, iam)),
    ssm: table(ssmActions(() => emulation.conduct.pageLimit)),
    servicequotas: table(quotaActions(ec2)),
  };
  const server = new AwsServer(emulation, actions, buckets, disabled);
  const address = options.address ?? '127.0.0.1';
  const endpoint = `http://${address}:${await server.listen(address)}`;
  const { accessKeyId, secretAccessKey } = mainKey;
  return {
    endpoint,
    env: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: homeRegion,
      // Else the SDK would ask 169.254.169.254, and read what the machine's user has.
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    },
    clientConfig: { endpoint, region: homeRegion, credentials: { accessKeyId, secretAccessKey } },
    conduct: emulation.conduct,
    control: new Control(emulation, ec2, iam, buckets, disabled),
    calls: server.calls,
    problems,
    takeProblems: () => problems.splice(0),
    async close() {
      emulation.timers.close();
      await server.close();
      buckets.close();
      if (problems.length > 0) throw new Error(`The emulated AWS was asked for what it does not do:\n${problems.join('\n')}`);
    },
  };
}
