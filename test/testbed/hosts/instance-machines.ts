import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LaunchedInstance, MachineAddresses, MachineBackend } from '../../fakes/aws/machine-backend.ts';
import type { TestSshHostOptions, TestSshHost, TestSshHosts } from './test-hosts.ts';

/** Options for the machines of an emulated cloud's instances. */
export interface InstanceMachinesOptions {
  /** Options for all instances of a region, such as its network delay. */
  readonly optionsOf?: (instance: LaunchedInstance) => TestSshHostOptions;
}

/** Makes the instances of an emulated cloud machines of a testbed; `hosts` must outlive it. */
export class InstanceMachines implements MachineBackend {
  /** Running machines by instance id, without terminated ones. */
  readonly machines = new Map<string, TestSshHost>();
  /** Machines during their creation. */
  readonly #launching = new Map<string, Promise<MachineAddresses>>();
  readonly #hosts: TestSshHosts;
  readonly #options: InstanceMachinesOptions;

  constructor(hosts: TestSshHosts, options: InstanceMachinesOptions = {}) {
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
    // The failed start was already reported.
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
function addressesOf({ ip }: TestSshHost): MachineAddresses {
  return { publicIp: ip, privateIp: ip };
}
