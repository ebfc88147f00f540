import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import {
  DescribeInstancesCommand,
  DescribeRegionsCommand,
  DescribeVpcsCommand,
  DescribeVpnGatewaysCommand,
  RunInstancesCommand,
} from '@aws-sdk/client-ec2';
import { GetUserCommand } from '@aws-sdk/client-iam';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../support/fake-clock.ts';
import { startFakeAws, type FakeAws } from '../fake-aws.ts';
import { aLaunch, clientsOf, outcomeOf, withFakeAws } from '../testing.ts';

type Credentials = FakeAws['clientConfig']['credentials'] & { readonly sessionToken?: string };

/** The responses of EC2, STS, SSM, IAM and S3 to a key. */
async function answersTo(aws: FakeAws, credentials: Credentials): Promise<readonly string[]> {
  const clients = clientsOf(aws, { credentials });
  const outcomes = await Promise.all([
    outcomeOf(clients.ec2.send(new DescribeVpcsCommand({}))),
    outcomeOf(clients.sts.send(new GetCallerIdentityCommand({}))),
    outcomeOf(clients.ssm.send(new GetParameterCommand({ Name: '/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64' }))),
    outcomeOf(clients.s3.send(new ListBucketsCommand({}))),
  ]);
  clients.close();
  return outcomes;
}

test('each service has its own error for unknown keys, secrets, sessions and tokens', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock }, async (aws) => {
    const { credentials } = aws.clientConfig;
    const session = aws.control.newSession(3_600);
    expect(await answersTo(aws, session)).toEqual(['ok', 'ok', 'ok', 'ok']);
    expect(await answersTo(aws, { ...credentials, accessKeyId: 'AKIAUNKNOWN' })).toEqual([
      'AuthFailure 401',
      'InvalidClientTokenId 403',
      'UnrecognizedClientException 400',
      'InvalidAccessKeyId 403',
    ]);
    expect(await answersTo(aws, { ...credentials, secretAccessKey: 'wrong' })).toEqual([
      'AuthFailure 401',
      'SignatureDoesNotMatch 403',
      'InvalidSignatureException 400',
      'SignatureDoesNotMatch 403',
    ]);
    expect((await answersTo(aws, { ...session, sessionToken: 'wrong' }))[1]).toBe('InvalidClientTokenId 403');
    await clock.advance(3_600_000);
    expect(await answersTo(aws, session)).toEqual([
      'RequestExpired 400',
      'ExpiredToken 403',
      'ExpiredTokenException 400',
      'ExpiredToken 400',
    ]);
  });
});

test('each action is throttled per region, and succeeds again after a while', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock }, async (aws, { ec2 }) => {
    aws.conduct.limitRate({ service: 'ec2' }, 1, 2);
    const call = (): Promise<string> => outcomeOf(ec2.send(new DescribeVpcsCommand({})));
    expect([await call(), await call(), await call()]).toEqual(['ok', 'ok', 'RequestLimitExceeded 503']);
    expect(await outcomeOf(ec2.send(new DescribeRegionsCommand({})))).toBe('ok');
    await clock.advance(1_000);
    expect([await call(), await call()]).toEqual(['ok', 'RequestLimitExceeded 503']);
  });
});

test('the SDK retries by itself when throttled or after a few service failures', async () => {
  await withFakeAws({}, async (aws) => {
    aws.conduct.refuse({ action: 'DescribeVpcs', times: 1 }, 'RequestLimitExceeded');
    aws.conduct.refuse({ action: 'DescribeVpcs', times: 1 }, 'InternalError');
    const { ec2, close } = clientsOf(aws, { maxAttempts: 3 });
    expect(await outcomeOf(ec2.send(new DescribeVpcsCommand({})))).toBe('ok');
    expect(aws.calls.map(({ outcome }) => outcome).toSorted()).toEqual(['InternalError', 'RequestLimitExceeded', 'ok'].toSorted());
    close();
  });
});

test('a retry with the same token after a lost reply creates nothing twice', async () => {
  await withFakeAws({}, async (aws) => {
    aws.conduct.add({ action: 'RunInstances', times: 1 }, { kind: 'lose-reply' });
    const { ec2, close } = clientsOf(aws, { maxAttempts: 2 });
    const { Instances: launched } = await ec2.send(new RunInstancesCommand(aLaunch()));
    expect(aws.control.instances.map(({ id }) => id)).toEqual(launched?.map(({ InstanceId: id }) => id));
    expect(aws.calls.map(({ outcome }) => outcome)).toEqual(['lost reply', 'ok']);
    close();
  });
});

test('a connection reset before the call leaves no effect', async () => {
  await withFakeAws({}, async (aws, { ec2 }) => {
    aws.conduct.add({ action: 'RunInstances' }, { kind: 'reset' });
    expect(await outcomeOf(ec2.send(new RunInstancesCommand(aLaunch())))).not.toBe('ok');
    expect(aws.control.instances).toEqual([]);
  });
});

test('a delayed call waits for its time', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock }, async (aws, { ec2 }) => {
    aws.conduct.add({ action: 'DescribeVpcs' }, { kind: 'delay', ms: 60_000 });
    let done = false;
    const call = ec2.send(new DescribeVpcsCommand({})).then(() => (done = true));
    while (clock.pendingTimers === 0) await clock.settle();
    await clock.advance(59_999);
    expect(done).toBe(false);
    await clock.advance(1);
    expect(await call).toBe(true);
  });
});

test('faults with a probability are the same for the same seed', async () => {
  const runs = await Promise.all(
    [1, 1, 2].map(async (seed) => {
      const outcomes: string[] = [];
      await withFakeAws({ seed }, async (aws, { ec2 }) => {
        aws.conduct.refuse({ action: 'DescribeInstances', probability: 0.5 }, 'Unavailable');
        for (let count = 0; count < 20; count += 1) outcomes.push(await outcomeOf(ec2.send(new DescribeInstancesCommand({}))));
      });
      return outcomes.join(' ');
    }),
  );
  expect([runs[0] === runs[1], runs[0] === runs[2]]).toEqual([true, false]);
});

test('faults with a limit per request let its later retries through, and count each request alone', async () => {
  await withFakeAws({}, async (aws, { ec2 }) => {
    aws.conduct.refuse({ action: 'DescribeInstances', perRequest: 2 }, 'Unavailable');
    const outcomes: string[] = [];
    for (let count = 0; count < 6; count += 1) outcomes.push(await outcomeOf(ec2.send(new DescribeInstancesCommand({}))));
    const refused = 'Unavailable 503';
    expect(outcomes).toEqual([refused, refused, 'ok', 'ok', 'ok', 'ok']);
    expect(await outcomeOf(ec2.send(new DescribeRegionsCommand({})))).toBe('ok');
  });
});

test('calls are recorded with the permissions that a policy must grant', async () => {
  await withFakeAws({}, async (aws, { ec2, sts }) => {
    await sts.send(new GetCallerIdentityCommand({}));
    await ec2.send(
      new RunInstancesCommand(aLaunch({ TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'a', Value: 'b' }] }] })),
    );
    expect(aws.calls).toMatchObject([
      { service: 'sts', action: 'GetCallerIdentity', permissions: [], outcome: 'ok' },
      { service: 'ec2', action: 'RunInstances', region: 'us-east-1', permissions: ['ec2:RunInstances', 'ec2:CreateTags'], outcome: 'ok' },
    ]);
  });
});

test('its variables make a process use the emulator with default credentials', async () => {
  await withFakeAws({}, async (aws) => {
    const script = `const { STSClient, GetCallerIdentityCommand: Who } = await import('@aws-sdk/client-sts');
      console.log((await new STSClient({}).send(new Who({}))).Arn);`;
    const { PATH = '' } = process.env;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env: { PATH, ...aws.env } });
    expect(stdout.trim()).toBe('arn:aws:iam::123456789012:user/tester');
  });
});

test('a call that is not emulated fails the test', async () => {
  const aws = await startFakeAws();
  const { ec2, iam, close } = clientsOf(aws);
  expect(await outcomeOf(ec2.send(new DescribeVpnGatewaysCommand({})))).toBe('InvalidAction 400');
  expect(await outcomeOf(iam.send(new GetUserCommand({})))).toBe('InvalidAction 400');
  await ec2.send(new RunInstancesCommand(aLaunch({ EnclaveOptions: { Enabled: true } })));
  close();
  expect(aws.problems).toEqual([
    'ec2:DescribeVpnGateways is not emulated',
    'iam:GetUser is not emulated',
    'RunInstances was given EnclaveOptions, which the emulator does not act upon',
  ]);
  await expect(aws.close()).rejects.toThrow('DescribeVpnGateways');
});
