import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { ReplicaView } from '../../src/api/contract.ts';
import { startFakeAws, type FakeAws, type FakeAwsOptions } from '../fakes/aws/fake-aws.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { writeWebService, type WebService } from '../support/web-service.ts';
import { InstanceMachines } from '../testbed/hosts/instance-machines.ts';
import { whyNoTestSshHosts } from '../testbed/hosts/needs.ts';
import { withTestSshHosts, type TestSshHost, type TestSshHosts } from '../testbed/hosts/test-hosts.ts';

/** Regions with equal prices and their one-way packet delays, ms: round trips of 2, 70 and 150. */
export const regions: Readonly<Record<string, number>> = { 'us-east-1': 1, 'us-east-2': 35, 'us-west-2': 75 };

/** A home, an emulated AWS whose instances are machines with a real sshd, and the network of all of them. */
export interface CloudWorld {
  readonly svc: Svc;
  readonly aws: FakeAws;
  readonly hosts: TestSshHosts;
  readonly instances: InstanceMachines;
}

const skipReason = whyNoTestSshHosts();

/** Groups tests that need machines; skipped with the reason where the testbed cannot run. */
export function describeCloud(name: string, tests: () => void): void {
  describe.skipIf(skipReason !== undefined)(`${name}${skipReason === undefined ? '' : ` (left out: ${skipReason})`}`, () => {
    tests();
  });
}

/** Runs `use` in a new world. Afterwards it removes every process, machine and network, even after a failure. */
export async function withCloud(options: FakeAwsOptions, use: (world: CloudWorld) => Promise<void>): Promise<void> {
  await withTestSshHosts(async (hosts) => {
    const instances = new InstanceMachines(hosts, { optionsOf: ({ region }) => ({ delayMs: regions[region] ?? 0 }) });
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

/**
 * Writes a service whose replicas answer with `replica ID`, after 50 ms and from a file of its working directory.
 * Returns the path of its file.
 */
export function webFiles(
  svc: Svc,
  replicas: WebService['replicas'],
  resources: readonly string[],
  service: readonly string[] = [],
): string {
  return writeWebService(svc, { replicas, resources, service, answerMs: 50 });
}

/** Fails when any resource remains in the account, including the bodies of objects. */
export function nothingLeft({ aws }: CloudWorld): void {
  expect(aws.control.leftovers()).toEqual([]);
  expect(aws.control.storedFiles()).toEqual([]);
}

/** Returns the machine of a replica that is an instance, by the address of its requests. */
export function instanceOf({ instances, aws }: CloudWorld, replica: ReplicaView): { readonly id: string; readonly host: TestSshHost } {
  const found = aws.control.instances.find((one) => one.state === 'running' && replica.endpoint?.includes(`${one.publicIp}:`));
  const host = found === undefined ? undefined : instances.machines.get(found.id);
  if (found === undefined || host === undefined) throw new Error(`no instance is replica ${replica.id} at ${replica.endpoint}`);
  return { id: found.id, host };
}
