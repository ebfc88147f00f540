import type { ListedMachine } from '../provider.ts';
import { mainRegion, type AwsAccount } from './account.ts';
import type { Ec2 } from './client.ts';
import { guard } from './guard.ts';
import type { HomeFiles, HomeIdentity } from './home-identity.ts';
import { removeControllerRole } from './instance-profile.ts';
import type { InstanceView } from './instance-view.ts';
import { machineIdOf, usualUser } from './machine-id.ts';
import { releaseRegion } from './release.ts';
import { livingStates, ofHome, tagFilter } from './tag-filter.ts';
import { callersTags, ownTags } from './tags.ts';

/** What a home has at AWS: found by the tag of who it is, where it ever asked for something; what a lost controller had, anywhere. */
export class Estate {
  readonly #account: AwsAccount;
  readonly #files: HomeFiles;
  readonly #view: InstanceView;

  constructor(account: AwsAccount, files: HomeFiles, view: InstanceView) {
    this.#account = account;
    this.#files = files;
    this.#view = view;
  }

  /** The machines with all of the tags. */
  async list(tags: Readonly<Record<string, string>>, signal: AbortSignal | undefined): Promise<readonly ListedMachine[]> {
    const controller = this.#controller(tags['svc-owner']);
    const identity = controller ?? this.#files.existing();
    // What this home has is where this home asked: nowhere, before it first did.
    if (identity === undefined) return [];
    const list = (ec2: Ec2, region: string): Promise<readonly ListedMachine[]> => listRegion(ec2, region, identity, tags);
    const found =
      controller === undefined
        ? await this.#account.inRegions(this.#files.regions(), 'list machines in', signal, list)
        : await this.#account.everywhere('list machines in', signal, list);
    const listed = new Map(found.flat().map((machine) => [machine.id, machine]));
    for (const made of this.#view.justMade(tags)) if (!listed.has(made.id)) listed.set(made.id, made);
    return [...listed.values()].filter(({ id }) => !this.#view.isRemoved(id));
  }

  /** Removes what an owner has beside machines, and all that a controller of this key made. */
  async release(ownerKey: string, signal: AbortSignal | undefined): Promise<void> {
    const identity = this.#files.existing();
    if (identity === undefined) return;
    await this.#account.inRegions(this.#files.regions(), `remove what belongs to ${ownerKey} in`, signal, (ec2, region) =>
      releaseRegion(ec2, region, identity, ownerKey),
    );
    const controller = this.#controller(ownerKey);
    if (controller !== undefined) {
      const release = (ec2: Ec2, region: string): Promise<void> => releaseRegion(ec2, region, controller, undefined);
      await this.#account.everywhere(`remove what the controller ${ownerKey} made in`, signal, release);
      this.#files.forgetController(ownerKey);
    }
    if (!this.#files.hasRole(ownerKey)) return;
    const clients = await this.#account.clients(await this.#account.config());
    await guard(`remove the role of ${ownerKey}`, signal, () => removeControllerRole(clients.iam(mainRegion, signal), ownerKey));
    this.#files.forgetRole(ownerKey);
  }

  #controller(key: string | undefined): Pick<HomeIdentity, 'id'> | undefined {
    return key === undefined ? undefined : this.#files.controllerIdentity(key);
  }
}

async function listRegion(
  ec2: Ec2,
  region: string,
  identity: Pick<HomeIdentity, 'id'>,
  tags: Readonly<Record<string, string>>,
): Promise<readonly ListedMachine[]> {
  const withTags = Object.entries(tags).map(([name, value]) => tagFilter(name, value));
  const instances = await ec2.instances([...ofHome(identity.id, undefined), livingStates, ...withTags]);
  return instances.flatMap(({ InstanceId, Tags = [] }): ListedMachine[] => {
    if (InstanceId === undefined) return [];
    const user = Tags.find(({ Key }) => Key === ownTags.user)?.Value ?? usualUser;
    return [{ id: machineIdOf({ region, instanceId: InstanceId, user }), tags: callersTags(Tags) }];
  });
}
