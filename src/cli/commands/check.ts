import type { ProviderCheck } from '../../providers/provider.ts';
import type { ProviderContext } from '../../providers/registry.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import { systemRandom } from '../../shared/random.ts';
import { namespaceOf, narrowTo, readCheckTargets, type CheckTarget } from '../check-targets.ts';
import type { CommandContext } from '../context.ts';
import { oneLine, padTo } from '../display-text.ts';

interface CheckArgs {
  readonly places: readonly string[];
  readonly json: boolean;
  readonly role: boolean;
}

type PlaceCheck = ProviderCheck & { readonly name: string };

/** `svc check`: looks at each place from here and now, without the controller. */
export async function check(args: CheckArgs, context: CommandContext): Promise<void> {
  const { ui, signal } = context;
  const named = readCheckTargets(args.places);
  if (args.role) return printRole(named, context);
  const { openProvider, providerNames } = await import('../../providers/registry.ts');
  const isPlace = (name: string): boolean => providerNames.some((one) => one === name);
  const targets = named.length > 0 ? named : providerNames.map((place): CheckTarget => ({ place, parts: [] }));
  const whole = await wholeContext(context);
  // What is named wrongly is refused before anybody is asked.
  const opened = await Promise.all(
    targets.map(async (target) => openProvider(target.place, isPlace(target.place) ? await narrowed(target, whole) : whole)),
  );
  const places: PlaceCheck[] = [];
  for (const provider of opened) places.push({ name: provider.name, ...(await provider.check({ signal })) });
  if (args.json) ui.json({ places });
  else for (const place of places) for (const line of renderPlace(place, context)) ui.print(line);
}

async function wholeContext({ paths, clock }: CommandContext): Promise<ProviderContext> {
  const { loadConfig } = await import('../../spec/load-config.ts');
  const { loadSshPools } = await import('../../spec/load-ssh-pools.ts');
  return {
    paths,
    clock,
    random: systemRandom,
    config: async () => loadConfig(paths.config),
    sshPools: async () => loadSshPools(paths.sshPools),
    fence: noFence,
  };
}

/** What a place gets from outside, so that it finds nothing but the parts that were named. */
async function narrowed(target: CheckTarget, whole: ProviderContext): Promise<ProviderContext> {
  if (target.parts.length === 0) return whole;
  const sshPools = target.place === 'ssh' ? await whole.sshPools() : [];
  const settings = narrowTo(target, { config: await whole.config(), sshPools }, await namesFor(target, whole));
  return { ...whole, config: async () => settings.config, sshPools: async () => settings.sshPools };
}

/** What the parts of a place can be called where neither the configuration nor the file of pools says so. */
async function namesFor({ place }: CheckTarget, whole: ProviderContext): Promise<readonly string[]> {
  if (place === 'kubernetes') {
    const { kubeContexts } = await import('../../kubernetes/contexts.ts');
    return kubeContexts().names;
  }
  if (place !== 'aws') return [];
  const { PriceTables } = await import('../../catalog/price-tables.ts');
  const { regionsOf } = await import('../../catalog/price-table.ts');
  const table = await new PriceTables(whole.paths.catalogDir).table(place);
  return table === undefined ? [] : regionsOf(table);
}

/** Only Kubernetes has one that can be printed; AWS's policy is on its page. */
async function printRole(targets: readonly CheckTarget[], { ui, paths }: CommandContext): Promise<void> {
  const [target = { place: 'kubernetes', parts: [] }] = targets;
  const other = targets.find(({ place }) => place !== 'kubernetes');
  if (other !== undefined)
    throw new SvcError('SVC_USAGE', `There is no role to print for ${other.place}.`, { hint: 'Run: svc check kubernetes --role' });
  const { roleYaml } = await import('../../domain/kubernetes-role.ts');
  const { loadConfig } = await import('../../spec/load-config.ts');
  ui.print(roleYaml(namespaceOf(target, await loadConfig(paths.config))).trimEnd());
}

function renderPlace(place: PlaceCheck, { ui }: CommandContext): readonly string[] {
  const mark = place.enabled ? ui.paint('good', 'enabled') : ui.paint('bad', 'disabled');
  const width = Math.max(0, ...place.details.map(([label]) => label.length));
  return [
    `${ui.paint('strong', place.name)}: ${mark}. ${oneLine(place.summary)}`,
    ...place.details.map(([label, value]) => `  ${padTo(label, width)}  ${oneLine(value)}`),
    ...place.remedies.map((remedy) => `  ${ui.paint('busy', '→')} ${oneLine(remedy)}`),
  ];
}
