import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LaunchedInstance, MachineAddresses, MachineHost } from '../../fakes/aws/machine-host.ts';
import type { HostOptions, TestHost, TestHosts } from './test-hosts.ts';

/** What an emulated cloud's instances are like as machines of the testbed. */
export interface InstanceHostOptions {
  /** For all instances of a region, such as how far away it is. */
  readonly optionsOf?: (instance: LaunchedInstance) => HostOptions;
}

/** Lets the instances of an emulated cloud be machines of a testbed: `hosts` must outlive it. */
export class InstanceHost implements MachineHost {
  /** By instance id; those that were terminated are gone. */
  readonly machines = new Map<string, TestHost>();
  /** Those that are being made. */
  readonly #launching = new Map<string, Promise<MachineAddresses>>();
  readonly #hosts: TestHosts;
  readonly #options: InstanceHostOptions;

  constructor(hosts: TestHosts, options: InstanceHostOptions = {}) {
    this.#hosts = hosts;
    this.#options = options;
  }

  async launch(instance: LaunchedInstance): Promise<MachineAddresses> {
    const launching = this.#make(instance).finally(() => this.#launching.delete(instance.id));
    this.#launching.set(instance.id, launching);
    return launching;
  }

  async stop(id: string): Promise<void> {
    await this.machines.get(id)?.kill();
  }

  async start(id: string): Promise<MachineAddresses> {
    const host = this.machines.get(id);
    if (host === undefined) throw new Error(`there is no machine for the instance ${id}`);
    await host.start();
    return addressesOf(host);
  }

  async terminate(id: string): Promise<void> {
    // One that did not come up is nobody's business any more.
    await this.#launching.get(id)?.catch(() => undefined);
    const host = this.machines.get(id);
    this.machines.delete(id);
    await host?.down();
  }

  async #make(instance: LaunchedInstance): Promise<MachineAddresses> {
    const files = mkdtempSync(join(tmpdir(), 'svc-instance-'));
    try {
      const { keyPublic, userData } = instance;
      const key = join(files, 'key.pub');
      const program = join(files, 'user-data');
      if (keyPublic !== undefined) writeFileSync(key, `${keyPublic.trim()}\n`);
      if (userData !== undefined) writeFileSync(program, userData);
      const host = await this.#hosts.up(instance.id.toLowerCase(), {
        ...this.#options.optionsOf?.(instance),
        ...(keyPublic === undefined ? {} : { keys: [key] }),
        ...(userData === undefined ? {} : { userData: program }),
      });
      this.machines.set(instance.id, host);
      return addressesOf(host);
    } finally {
      rmSync(files, { recursive: true, force: true });
    }
  }
}

/** The testbed has one network: both addresses are the same. */
function addressesOf({ ip }: TestHost): MachineAddresses {
  return { publicIp: ip, privateIp: ip };
}
