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
import type { MachineBackend } from './machine-backend.ts';
import { quotaActions } from './quotas/actions.ts';
import { BucketStore } from './s3/buckets.ts';
import { KeyRing } from './sigv4/key-ring.ts';
import { ssmActions } from './ssm/actions.ts';
import { stsActions } from './sts/actions.ts';

/** Options of an emulator, all optional. */
export interface FakeAwsOptions {
  /** Clock of the emulator. Signatures are always checked against the real time, which the SDK writes into them. */
  readonly clock?: Clock;
  /** Source of ids, zones, times within their ranges, and faults with a probability. */
  readonly seed?: number;
  /** Turns instances into real machines. Without it they are records, and connections to their addresses fail. */
  readonly machines?: MachineBackend;
  /** Overrides of `quickTiming`. */
  readonly timing?: Partial<Timing>;
  /** Opt-in regions that the account has enabled; default: none. */
  readonly enabledRegions?: readonly string[];
  /** Additional machine types. */
  readonly instanceTypes?: readonly InstanceTypeData[];
  /** Listen address: 127.0.0.1, or an address of the test's own network that its machines can reach. */
  readonly address?: string;
}

/** An emulated AWS: one account, all regions, on one port. */
export interface FakeAws {
  /** For AWS_ENDPOINT_URL. */
  readonly endpoint: string;
  /** Makes the official SDKs of a process talk to this emulator only. */
  readonly env: Readonly<Record<string, string>>;
  /** The same for a client in this process. */
  readonly clientConfig: {
    readonly endpoint: string;
    readonly region: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  };
  /** Injects faults and limits. */
  readonly conduct: Conduct;
  /** Actions of a person in the console, or of AWS itself. */
  readonly control: Control;
  /** Every received call, in order of its reply. */
  readonly calls: readonly RecordedCall[];
  /** Calls that the emulator cannot answer faithfully; `close` fails when there are any. */
  readonly problems: readonly string[];
  /** Returns and clears the problems that a test expected. */
  takeProblems(): readonly string[];
  /** Closes it. Fails when a call was not emulated. */
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

/** Starts an emulated AWS, on loopback by default; the caller must close it. */
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
  const ec2 = new Ec2({
    emulation,
    regions: regionData,
    types,
    machineBackend: options.machines,
    profileArn: (name) => iam.profileArn(name),
  });
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
      // Without this the SDK would query 169.254.169.254 and read the user's own configuration.
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
