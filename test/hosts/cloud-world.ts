import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { ReplicaView } from '../../src/api/contract.ts';
import { startFakeAws, type FakeAws, type FakeAwsOptions } from '../fakes/aws/fake-aws.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { writeWebService } from '../support/web-service.ts';
import { InstanceHost } from '../testbed/hosts/instance-host.ts';
import { whyNoTestHosts } from '../testbed/hosts/needs.ts';
import { withTestHosts, type TestHost, type TestHosts } from '../testbed/hosts/test-hosts.ts';

/** Regions that cost the same, and how long a packet takes there one way, ms: there and back 2, 70 and 150. */
export const regions: Readonly<Record<string, number>> = { 'us-east-1': 1, 'us-east-2': 35, 'us-west-2': 75 };

/** A home, an emulated AWS whose instances are machines with a real sshd, and the network that all of them are in. */
export interface CloudWorld {
  readonly svc: Svc;
  readonly aws: FakeAws;
  readonly hosts: TestHosts;
  readonly instances: InstanceHost;
}

const skipReason = whyNoTestHosts();

/** Groups tests that need machines; left out, with the reason, where there can be none. */
export function describeCloud(name: string, tests: () => void): void {
  describe.skipIf(skipReason !== undefined)(`${name}${skipReason === undefined ? '' : ` (left out: ${skipReason})`}`, () => {
    tests();
  });
}

/** Runs `use` in a world of its own. Whatever becomes of it, no process, machine or network is left. */
export async function withCloud(options: FakeAwsOptions, use: (world: CloudWorld) => Promise<void>): Promise<void> {
  await withTestHosts(async (hosts) => {
    const instances = new InstanceHost(hosts, { optionsOf: ({ region }) => ({ delayMs: regions[region] ?? 0 }) });
    const aws = await startFakeAws({ machines: instances, address: hosts.ownIp, ...options });
    try {
      await withSvc((svc) => use({ svc, aws, hosts, instances }), { env: aws.env });
    } catch (error) {
      aws.takeProblems();
      throw error;
    } finally {
      await aws.close();
    }
  });
}

/** Writes the configuration of the home. */
export function configure(svc: Svc, text: string): void {
  writeFileSync(join(svc.home, 'config.yaml'), text);
}

/** Writes a service whose replicas answer with `replica ID`, after 50 ms and from a file of its working directory; gives the path of its file. */
export function webFiles(svc: Svc, replicas: number, resources: readonly string[], service: readonly string[] = []): string {
  return writeWebService(svc, { replicas, resources, service, answerMs: 50 });
}

/** Fails when anything is left in the account, down to the bodies of objects. */
export function nothingLeft({ aws }: CloudWorld): void {
  expect(aws.control.leftovers()).toEqual([]);
  expect(aws.control.storedFiles()).toEqual([]);
}

/** The machine of a replica that is an instance, by the address that requests for it go to. */
export function instanceOf({ instances, aws }: CloudWorld, replica: ReplicaView): { readonly id: string; readonly host: TestHost } {
  const found = aws.control.instances.find((one) => one.state === 'running' && replica.endpoint?.includes(`${one.publicIp}:`));
  const host = found === undefined ? undefined : instances.machines.get(found.id);
  if (found === undefined || host === undefined) throw new Error(`no instance is replica ${replica.id} at ${replica.endpoint}`);
  return { id: found.id, host };
}
