import { expect } from 'vitest';
import { defaultConfig, type AwsConfig } from '../../src/domain/config.ts';
import type { Resources } from '../../src/domain/task.ts';
import { AwsProvider } from '../../src/providers/aws/index.ts';
import { ProviderRefusal } from '../../src/providers/provider-refusal.ts';
import type { MachineId, MachineSpec, Offer } from '../../src/providers/provider.ts';
import type { HomePaths } from '../../src/shared/paths.ts';
import { startFakeAws, type FakeAws, type FakeAwsOptions } from '../fakes/aws/fake-aws.ts';
import { aMachineSpec, someResources } from './builders.ts';
import { aProviderContext } from './provider-context.ts';
import { withTempHome } from './temp-home.ts';
import { waitFor } from './wait-for.ts';

/**
 * An emulated AWS as a provider, in a new home. Instances of the emulator are ready when they run, because no SSH login
 * is possible there.
 */
export interface AwsProviderFixture {
  readonly aws: FakeAws;
  readonly paths: HomePaths;
  readonly provider: AwsProvider;
  /** The provider as another process of the same home would open it. */
  open(): AwsProvider;
  /** The same, but its machines boot until an SSH login works: for machines that are real, or on loopback. */
  openReal(): AwsProvider;
  /** Changes the configuration of the home. */
  configure(change: Partial<AwsConfig>): void;
  /** The cheapest offer. */
  offer(resources?: Partial<Resources>): Promise<Offer>;
  create(key: string, spec?: Partial<MachineSpec>, resources?: Partial<Resources>): Promise<MachineId>;
  untilState(id: MachineId, state: string): Promise<void>;
}

/** The permissions that a policy needs for all calls to emulated AWS in this process. */
export const usedPermissions = new Set<string>();

/** Resources for the smallest machine, in a region near the start of every list. */
export const smallOnAws: Partial<Resources> = { instanceType: 't3.small', region: 'us-east-1', diskSizeGb: 10 };

/** Sets environment variables of this process while `use` runs. */
export async function withEnv<T>(variables: Readonly<Record<string, string | undefined>>, use: () => Promise<T>): Promise<T> {
  const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]));
  setEnv(variables);
  try {
    return await use();
  } finally {
    setEnv(before);
  }
}

function setEnv(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

/** Runs `use` with an emulated AWS. It sets variables of the process, so two cannot run at once. */
export async function withAwsProvider(
  options: FakeAwsOptions & { readonly config?: Partial<AwsConfig> },
  use: (fixture: AwsProviderFixture) => Promise<void>,
): Promise<void> {
  const { config: given, ...emulation } = options;
  const aws = await startFakeAws(emulation);
  try {
    await withEnv(aws.env, () =>
      withTempHome(async (home) => {
        let config = { ...defaultConfig, aws: { ...defaultConfig.aws, ...given } };
        const context = aProviderContext(home, { config: () => Promise.resolve(config) });
        const open = (): AwsProvider => new AwsProvider(context, { isReady: () => Promise.resolve(true) });
        const provider = open();
        const offer = async (resources: Partial<Resources> = {}): Promise<Offer> => {
          const { offers, whyNone } = await provider.offers(someResources({ ...smallOnAws, ...resources }), {});
          const [first] = offers;
          if (first === undefined) throw new Error(`no offer: ${whyNone}`);
          return first;
        };
        await use({
          aws,
          paths: context.paths,
          provider,
          open,
          openReal: () => new AwsProvider(context),
          offer,
          configure: (change) => (config = { ...config, aws: { ...config.aws, ...change } }),
          create: async (key, spec, resources) =>
            provider.create(await offer(resources), aMachineSpec({ tags: { 'svc-key': key }, ...spec }), key, {}),
          async untilState(id, state) {
            await waitFor(`${id} to be ${state}`, async () => (await provider.inspect([id], {})).get(id)?.state === state, {
              describe: async () => JSON.stringify((await provider.inspect([id], {})).get(id)),
            });
          },
        });
      }),
    );
  } finally {
    for (const { permissions } of aws.calls) for (const permission of permissions) usedPermissions.add(permission);
    await aws.close();
  }
}

/** Another home on the same AWS. */
export async function withSecondAwsProvider(
  { aws }: AwsProviderFixture,
  use: (fixture: AwsProviderFixture) => Promise<void>,
): Promise<void> {
  await withAwsProvider({}, async (fixture) => {
    process.env['AWS_ENDPOINT_URL'] = aws.endpoint;
    await use(fixture);
  });
}

/** The rules for ports of all firewall groups, as `FROM-TO PEER`. */
export function rulesOf({ aws }: AwsProviderFixture): readonly string[] {
  const rules = aws.control.groups.flatMap((group) => [...group.rules.values()]).filter(({ fromPort }) => fromPort >= 0);
  return rules.map(({ fromPort, toPort, peer }) => `${fromPort}-${toPort} ${peer}`).toSorted();
}

/** Makes all rules for this machine's address rules for another one, as if it had moved to another network. */
export function moveMachine({ aws }: AwsProviderFixture): void {
  for (const { rules } of aws.control.groups)
    for (const [id, rule] of rules) if (rule.peer === '127.0.0.1/32') rules.set(id, { ...rule, peer: '198.51.100.9/32' });
}

/** AWS's own id of a machine. */
export function instanceIdOf(id: MachineId): string {
  const [, instanceId] = id.split('/');
  if (instanceId === undefined) throw new Error(`${id} is no machine of AWS`);
  return instanceId;
}

/** The reason of a provider's refusal, as `KIND SCOPE`; the error as text when it is no refusal. */
export async function refusalOf(creating: Promise<unknown>): Promise<string> {
  const error: unknown = await creating.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof ProviderRefusal ? `${error.refusal} ${error.scope}` : String(error);
}

/** Removes everything: machines first, then other resources. `pass` advances time where only the test does that. */
export async function cleanUpAwsProvider({ provider, aws }: AwsProviderFixture, owner: string, pass?: () => Promise<void>): Promise<void> {
  for (const { id } of await provider.list({}, {})) await provider.destroy(id, {});
  await waitFor('everything to be released', async () => {
    await pass?.();
    try {
      await provider.release(owner, {});
      return true;
    } catch (error) {
      if (error instanceof Error && error.message.includes('is still used by')) return false;
      throw error;
    }
  });
  expect(aws.control.leftovers()).toEqual([]);
}
