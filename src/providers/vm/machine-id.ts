import { SvcError } from '../../shared/errors.ts';
import { isMachineId, type MachineId } from '../provider.ts';
import type { VmDriver, VmRef } from './driver.ts';

const form = /^([A-Za-z][A-Za-z0-9-]*)\/([^/]+)(?:\/([a-z_][a-z0-9_-]*))?$/;

/** `REGION/INSTANCE`, or `REGION/INSTANCE/USER` for an unusual login user: enough to find a machine and log in. */
export class MachineIds {
  readonly #driver: Pick<VmDriver, 'title' | 'traits'>;

  constructor(driver: Pick<VmDriver, 'title' | 'traits'>) {
    this.#driver = driver;
  }

  of({ region, instanceId, user }: VmRef): MachineId {
    const id = `${region}/${instanceId}${user === this.#driver.traits.usualUser ? '' : `/${user}`}`;
    if (!isMachineId(id)) throw new Error('an id is never empty');
    return id;
  }

  /** Undefined for an id of another form. */
  read(id: string): VmRef | undefined {
    const { usualUser, instanceForm } = this.#driver.traits;
    const [, region, instanceId, user = usualUser] = form.exec(id) ?? [];
    if (region === undefined || instanceId === undefined || !instanceForm.test(instanceId)) return undefined;
    return { region, instanceId, user };
  }

  /** Throws SVC_MACHINE_LOST for an id of another form. */
  existing(id: MachineId): VmRef {
    const ref = this.read(id);
    if (ref === undefined) throw new SvcError('SVC_MACHINE_LOST', `'${id}' is no machine of ${this.#driver.title}.`);
    return ref;
  }

  /** Omits ids of another form. */
  byRegion(ids: readonly MachineId[], regionOf: (ref: VmRef) => string): ReadonlyMap<string, ReadonlyMap<MachineId, VmRef>> {
    const regions = new Map<string, Map<MachineId, VmRef>>();
    for (const id of ids) {
      const ref = this.read(id);
      if (ref === undefined) continue;
      const region = regionOf(ref);
      const machines = regions.get(region) ?? new Map<MachineId, VmRef>();
      regions.set(region, machines.set(id, ref));
    }
    return regions;
  }
}
