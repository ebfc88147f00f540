import {
  AddRoleToInstanceProfileCommand,
  CreateInstanceProfileCommand,
  CreateRoleCommand,
  DeleteInstanceProfileCommand,
  DeleteRoleCommand,
  DeleteRolePolicyCommand,
  GetInstanceProfileCommand,
  GetRolePolicyCommand,
  PutRolePolicyCommand,
  RemoveRoleFromInstanceProfileCommand,
} from '@aws-sdk/client-iam';
import { RunInstancesCommand } from '@aws-sdk/client-ec2';
import { GetParametersByPathCommand, GetParametersCommand } from '@aws-sdk/client-ssm';
import { AssumeRoleCommand, GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../support/fake-clock.ts';
import { aLaunch, clientsOf, outcomeOf, ubuntuIn, withFakeAws } from '../testing.ts';

const trust = JSON.stringify({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'ec2.amazonaws.com' }, Action: 'sts:AssumeRole' }],
});
const policy = JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: 'ec2:*', Resource: '*' }] });
const profile = { InstanceProfileName: 'p' };
const role = { RoleName: 'r' };

test('a profile with a role works for a launch once it has propagated', async () => {
  const clock = new FakeClock();
  const invisibleMs = { instance: [0, 0], tag: [0, 0], group: [0, 0], key: [0, 0], iam: [8_000, 8_000] } as const;
  await withFakeAws({ clock, timing: { invisibleMs } }, async (_aws, { iam, ec2 }) => {
    await iam.send(new CreateRoleCommand({ ...role, AssumeRolePolicyDocument: trust, Tags: [{ Key: 'a', Value: 'b' }] }));
    await iam.send(new PutRolePolicyCommand({ ...role, PolicyName: 'all', PolicyDocument: policy }));
    await iam.send(new CreateInstanceProfileCommand(profile));
    await iam.send(new AddRoleToInstanceProfileCommand({ ...profile, ...role }));
    const read = (): Promise<string> => outcomeOf(iam.send(new GetInstanceProfileCommand(profile)));
    const launch = (): Promise<string> => outcomeOf(ec2.send(new RunInstancesCommand(aLaunch({ IamInstanceProfile: { Name: 'p' } }))));
    expect([await read(), await launch()]).toEqual(['NoSuchEntityException 404', 'InvalidParameterValue 400']);
    await clock.advance(8_000);
    expect([await read(), await launch()]).toEqual(['ok', 'ok']);
    const { InstanceProfile: found } = await iam.send(new GetInstanceProfileCommand(profile));
    expect(found?.Roles?.map(({ RoleName: name }) => name)).toEqual(['r']);
    const { PolicyDocument: text } = await iam.send(new GetRolePolicyCommand({ ...role, PolicyName: 'all' }));
    expect(decodeURIComponent(text ?? '')).toBe(policy);
  });
});

test('roles and profiles are deleted in the right order only, and exist once', async () => {
  await withFakeAws({}, async (aws, { iam }) => {
    const create = (): Promise<string> => outcomeOf(iam.send(new CreateRoleCommand({ ...role, AssumeRolePolicyDocument: trust })));
    expect([await create(), await create()]).toEqual(['ok', 'EntityAlreadyExistsException 409']);
    expect(await outcomeOf(iam.send(new PutRolePolicyCommand({ ...role, PolicyName: 'p', PolicyDocument: 'no policy' })))).toBe(
      'MalformedPolicyDocumentException 400',
    );
    await iam.send(new PutRolePolicyCommand({ ...role, PolicyName: 'p', PolicyDocument: policy }));
    await iam.send(new CreateInstanceProfileCommand(profile));
    await iam.send(new AddRoleToInstanceProfileCommand({ ...profile, ...role }));
    const removeProfile = (): Promise<string> => outcomeOf(iam.send(new DeleteInstanceProfileCommand(profile)));
    const removeRole = (): Promise<string> => outcomeOf(iam.send(new DeleteRoleCommand(role)));
    expect([await removeProfile(), await removeRole()]).toEqual(['DeleteConflictException 409', 'DeleteConflictException 409']);
    await iam.send(new RemoveRoleFromInstanceProfileCommand({ ...profile, ...role }));
    expect([await removeProfile(), await removeRole()]).toEqual(['ok', 'DeleteConflictException 409']);
    await iam.send(new DeleteRolePolicyCommand({ ...role, PolicyName: 'p' }));
    expect([await removeRole(), await removeRole()]).toEqual(['ok', 'NoSuchEntityException 404']);
    expect(aws.control.leftovers()).toEqual([]);
  });
});

test('an assumed role has a key with another identity', async () => {
  await withFakeAws({}, async (aws, { iam, sts }) => {
    const made = await iam.send(new CreateRoleCommand({ ...role, AssumeRolePolicyDocument: trust }));
    const { Credentials: key } = await sts.send(new AssumeRoleCommand({ RoleArn: made.Role?.Arn ?? '', RoleSessionName: 'me' }));
    const credentials = {
      accessKeyId: key?.AccessKeyId ?? '',
      secretAccessKey: key?.SecretAccessKey ?? '',
      sessionToken: key?.SessionToken ?? '',
    };
    const clients = clientsOf(aws, { credentials });
    const who = await clients.sts.send(new GetCallerIdentityCommand({}));
    clients.close();
    expect(who.Arn).toBe('arn:aws:sts::123456789012:assumed-role/r/me');
    expect(
      await outcomeOf(sts.send(new AssumeRoleCommand({ RoleArn: 'arn:aws:iam::123456789012:role/none', RoleSessionName: 'me' }))),
    ).toBe('AccessDenied 403');
  });
});

test('public parameters name the images of each region, page by page', async () => {
  await withFakeAws({}, async (aws, { ssm }) => {
    const name = '/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id';
    const ohio = clientsOf(aws, { region: 'us-east-2' });
    const found = await ohio.ssm.send(new GetParametersCommand({ Names: [name, '/aws/service/none'] }));
    ohio.close();
    expect([found.Parameters?.map(({ Value: id }) => id), found.InvalidParameters]).toEqual([
      [ubuntuIn('us-east-2')],
      ['/aws/service/none'],
    ]);
    const all: (string | undefined)[] = [];
    let token: string | undefined;
    do {
      const page = await ssm.send(
        new GetParametersByPathCommand({
          Path: '/aws/service/canonical',
          Recursive: true,
          MaxResults: 3,
          ...(token === undefined ? {} : { NextToken: token }),
        }),
      );
      all.push(...(page.Parameters ?? []).map((one) => one.Name));
      token = page.NextToken;
    } while (token !== undefined);
    expect([all.length, all.includes(name)]).toEqual([4, true]);
  });
});
