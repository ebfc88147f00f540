import {
  CancelSpotInstanceRequestsCommand,
  DescribeInstancesCommand,
  DescribeSpotInstanceRequestsCommand,
  ImportKeyPairCommand,
  RunInstancesCommand,
  StopInstancesCommand,
  TerminateInstancesCommand,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2';
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../support/fake-clock.ts';
import type { FakeAws } from '../fake-aws.ts';
import type { InstanceNotice } from '../machine-backend.ts';
import { aLaunch, outcomeOf, withFakeAws, type Clients } from '../testing.ts';

const spot: Partial<RunInstancesCommandInput> = {
  InstanceMarketOptions: { MarketType: 'spot', SpotOptions: { SpotInstanceType: 'one-time', InstanceInterruptionBehavior: 'terminate' } },
};

async function launch({ ec2 }: Clients, more: Partial<RunInstancesCommandInput> = spot): Promise<string> {
  const { Instances: instances = [] } = await ec2.send(new RunInstancesCommand(aLaunch(more)));
  return instances[0]?.InstanceId ?? '';
}

async function status({ ec2 }: Clients, id: string): Promise<readonly (string | undefined)[]> {
  const filter = [{ Name: 'instance-id', Values: [id] }];
  const { SpotInstanceRequests: requests = [] } = await ec2.send(new DescribeSpotInstanceRequestsCommand({ Filters: filter }));
  const { Reservations: found = [] } = await ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }));
  const instance = found[0]?.Instances?.[0];
  return [requests[0]?.State, requests[0]?.Status?.Code, instance?.State?.Name, instance?.StateReason?.Code];
}

/** The metadata service of an instance on loopback, as a test machine has it at 169.254.169.254. */
async function withImds(
  aws: FakeAws,
  id: string,
  work: (ask: (path: string, init?: RequestInit) => Promise<readonly [number, string]>) => Promise<void>,
): Promise<void> {
  const server = createServer(aws.control.imds(id));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  try {
    await work(async (path, init) => {
      const response = await fetch(`http://127.0.0.1:${port}/latest/${path}`, init);
      return [response.status, await response.text()];
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('AWS sends an interruption notice two minutes before it reclaims a spot instance', async () => {
  const clock = new FakeClock();
  const notices: (readonly [string, InstanceNotice])[] = [];
  const addresses = { publicIp: '127.9.9.9', privateIp: '10.9.9.9' };
  const machines = {
    launch: () => Promise.resolve(addresses),
    start: () => Promise.resolve(addresses),
    stop: () => Promise.resolve(),
    terminate: () => Promise.resolve(),
    notice: (id: string, notice: InstanceNotice) => void notices.push([id, notice]),
  };
  await withFakeAws({ clock, machines }, async (aws, clients) => {
    const id = await launch(clients);
    await clock.advance(100);
    expect(await status(clients, id)).toEqual(['active', 'fulfilled', 'running', undefined]);
    aws.control.recommendRebalance(id);
    aws.control.interrupt(id);
    expect(notices).toEqual([
      [id, { kind: 'rebalance', at: clock.now() }],
      [id, { kind: 'interruption', at: clock.now() + 120_000 }],
    ]);
    await clock.advance(119_000);
    expect(await status(clients, id)).toEqual(['active', 'marked-for-termination', 'running', undefined]);
    await clock.advance(2_000);
    expect(await status(clients, id)).toEqual([
      'closed',
      'instance-terminated-no-capacity',
      'terminated',
      'Server.SpotInstanceTermination',
    ]);
    expect(aws.control.leftovers()).toEqual([]);
  });
});

test('termination by the user differs from reclamation by AWS without notice', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock }, async (aws, clients) => {
    const [own, taken] = [await launch(clients), await launch(clients)];
    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [own] }));
    aws.control.reclaim(taken);
    await clock.advance(100);
    expect(await status(clients, own)).toEqual(['closed', 'instance-terminated-by-user', 'terminated', 'Client.UserInitiatedShutdown']);
    expect(await status(clients, taken)).toEqual([
      'closed',
      'instance-terminated-no-capacity',
      'terminated',
      'Server.SpotInstanceTermination',
    ]);
  });
});

test('a one-time spot instance cannot stop, and survives cancellation of its request', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock }, async (aws, clients) => {
    const id = await launch(clients);
    await clock.advance(100);
    expect(await outcomeOf(clients.ec2.send(new StopInstancesCommand({ InstanceIds: [id] })))).toBe('UnsupportedOperation 400');
    await clients.ec2.send(new CancelSpotInstanceRequestsCommand({ SpotInstanceRequestIds: [aws.control.spotRequests[0]?.id ?? ''] }));
    expect(await status(clients, id)).toEqual(['cancelled', 'request-canceled-and-instance-running', 'running', undefined]);
  });
});

test('an instance reads its interruption notice from its metadata, with a token', async () => {
  const clock = new FakeClock(Date.UTC(2030, 0, 1, 12));
  await withFakeAws({ clock }, async (aws, clients) => {
    const id = await launch(clients, {
      ...spot,
      MetadataOptions: { HttpTokens: 'required' },
      UserData: Buffer.from('#!/bin/sh\n').toString('base64'),
    });
    await withImds(aws, id, async (ask) => {
      const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' };
      expect(await ask('meta-data/instance-id')).toEqual([401, '']);
      expect((await ask('api/token', { method: 'PUT' }))[0]).toBe(400);
      const [, token] = await ask('api/token', { method: 'PUT', headers: ttl });
      const headers = { 'x-aws-ec2-metadata-token': token };
      expect(await ask('meta-data/instance-id', { headers })).toEqual([200, id]);
      expect(await ask('user-data', { headers })).toEqual([200, '#!/bin/sh\n']);
      expect((await ask('meta-data/spot/instance-action', { headers }))[0]).toBe(404);
      aws.control.interrupt(id);
      aws.control.recommendRebalance(id);
      expect(await ask('meta-data/spot/instance-action', { headers })).toEqual([
        200,
        '{"action":"terminate","time":"2030-01-01T12:02:00Z"}',
      ]);
      expect(await ask('meta-data/events/recommendations/rebalance', { headers })).toEqual([200, '{"noticeTime":"2030-01-01T12:00:00Z"}']);
      await clock.advance(61_000);
      expect(await ask('meta-data/instance-id', { headers })).toEqual([401, '']);
    });
  });
});

test('metadata includes the public key and allows version 1 unless tokens are required', async () => {
  await withFakeAws({}, async (aws, clients) => {
    const publicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGhlbGxvIHdvcmxkIHRoaXMgaXMgMzIgYnl0ZXMhIQ== me';
    await clients.ec2.send(new ImportKeyPairCommand({ KeyName: 'mine', PublicKeyMaterial: Buffer.from(publicKey) }));
    const id = await launch(clients, { KeyName: 'mine' });
    await withImds(aws, id, async (ask) => {
      expect(await ask('meta-data/public-keys/0/openssh-key')).toEqual([200, publicKey]);
      expect((await ask('meta-data/iam/security-credentials/'))[0]).toBe(404);
    });
  });
});
