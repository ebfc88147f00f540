import { SvcError } from '../../shared/errors.ts';
import { isMachineId, type MachineId } from '../provider.ts';

/** What the id of a machine says: `REGION/INSTANCE`, or `REGION/INSTANCE/USER` where the user to log in as is not the usual one. */
export interface InstanceRef {
  readonly region: string;
  readonly instanceId: string;
  readonly user: string;
}

/** The user of the images that are taken when the file names none. */
export const usualUser = 'ubuntu';

const form = /^([a-z]{2,4}(?:-[a-z]+)+-\d+)\/(i-[0-9a-z]+)(?:\/([a-z_][a-z0-9_-]*))?$/;

/** The id that callers keep: all that is needed to find and enter the machine without asking AWS. */
export function machineIdOf({ region, instanceId, user }: InstanceRef): MachineId {
  const id = `${region}/${instanceId}${user === usualUser ? '' : `/${user}`}`;
  if (!isMachineId(id)) throw new Error('an id is never empty');
  return id;
}

/** Undefined for what is no id of this place. */
export function readMachineId(id: string): InstanceRef | undefined {
  const [, region, instanceId, user = usualUser] = form.exec(id) ?? [];
  return region === undefined || instanceId === undefined ? undefined : { region, instanceId, user };
}

/** As `readMachineId`, for who needs the machine. Throws SVC_MACHINE_LOST for what is no id of this place. */
export function existingRef(id: MachineId): InstanceRef {
  const ref = readMachineId(id);
  if (ref === undefined) throw new SvcError('SVC_MACHINE_LOST', `'${id}' is no machine of AWS.`);
  return ref;
}
