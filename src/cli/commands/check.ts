import { cloudSection } from '../../domain/config.ts';
import type { Provider, ProviderCheck } from '../../providers/provider.ts';
import type { ProviderContext } from '../../providers/registry.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import { systemRandom } from '../../shared/random.ts';
import { namespaceOf, narrowTo, readCheckTargets, type CheckTarget } from '../check-targets.ts';
import { commandEnd } from '../connection/connection.ts';
import type { CommandContext } from '../command.ts';
import { oneLine, padTo } from '../listing/display-text.ts';

interface CheckArgs {
  readonly providers: readonly string[];
  readonly json: boolean;
  readonly role: boolean;
}

type ProviderResult = ProviderCheck & { readonly name: string };

/** `svc check`: checks each provider from this machine, without the controller. */
export async function check(args: CheckArgs, context: CommandContext): Promise<void> {
  const { ui, signal } = context;
  const named = readCheckTargets(args.providers);
  if (args.role) return printRole(named, context);
  const { openProvider, providerNames } = await import('../../providers/registry.ts');
  const isProvider = (name: string): boolean => providerNames.some((one) => one === name);
  const targets = named.length > 0 ? named : providerNames.map((provider): CheckTarget => ({ provider, parts: [] }));
  const whole = await wholeContext(context);
  // A wrong name is refused before any provider is called.
  const opened = await Promise.all(
    targets.map(async (target) => openProvider(target.provider, isProvider(target.provider) ? await narrowed(target, whole) : whole)),
  );
  const progress = ui.waiting();
  progress.now(`Checking ${opened.map(({ name }) => name).join(', ')}`);
  const results = await Promise.all(opened.map((provider) => checkProvider(provider, context))).finally(() => progress.stop());
  signal.throwIfAborted();
  if (args.json) ui.json({ places: results });
  else for (const result of results) for (const line of renderResult(result, context)) ui.print(line);
}

/** Timeout of a check, ms. Some providers need half a minute to detect that a server does not answer. */
const checkLimitMs = 60_000;

/** Timeout of facts that are only displayed, ms: the user is waiting for the result. */
const factsMs = 8_000;

class TooLong extends Error {}

async function checkProvider(provider: Provider, { clock, signal }: CommandContext): Promise<ProviderResult> {
  const { name } = provider;
  const ask = (inner: AbortSignal): Promise<ProviderCheck> => provider.check({ signal: inner, factsMs });
  try {
    const ending = AbortSignal.any([signal, commandEnd.signal]);
    return { name, ...(await withDeadline(clock, checkLimitMs, ask, () => new TooLong(), ending)) };
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    const slow = `its check did not end within ${checkLimitMs / 1_000} s`;
    return {
      name,
      enabled: false,
      summary: `answers slowly: ${slow}`,
      remedies: [`Run: svc check ${name}`],
      details: [],
      sharedPorts: undefined,
      slow,
    };
  }
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

async function narrowed(target: CheckTarget, whole: ProviderContext): Promise<ProviderContext> {
  if (target.parts.length === 0) return whole;
  const sshPools = target.provider === 'ssh' ? await whole.sshPools() : [];
  const settings = narrowTo(target, { config: await whole.config(), sshPools }, await namesFor(target, whole));
  return { ...whole, config: async () => settings.config, sshPools: async () => settings.sshPools };
}

/** Names of a provider's parts that come from neither the configuration nor the file of pools. */
async function namesFor({ provider }: CheckTarget, whole: ProviderContext): Promise<readonly string[]> {
  if (provider === 'kubernetes') {
    const { kubeContexts } = await import('../../kubernetes/contexts.ts');
    return kubeContexts().names;
  }
  if (cloudSection(provider) === undefined) return [];
  const { PriceTables } = await import('../../catalog/price-tables.ts');
  const { regionsOf } = await import('../../catalog/price-table.ts');
  const table = await new PriceTables(whole.paths.catalogDir).table(provider);
  return table === undefined ? [] : regionsOf(table);
}

/** Only Kubernetes has a role that can be printed. The permissions for a cloud are on its page in the docs. */
async function printRole(targets: readonly CheckTarget[], { ui, paths }: CommandContext): Promise<void> {
  const [target = { provider: 'kubernetes', parts: [] }] = targets;
  const other = targets.find(({ provider }) => provider !== 'kubernetes');
  if (other !== undefined)
    throw new SvcError('SVC_USAGE', `There is no role to print for ${other.provider}.`, { hint: 'Run: svc check kubernetes --role' });
  const { roleYaml } = await import('../../domain/kubernetes/kubernetes-role.ts');
  const { loadConfig } = await import('../../spec/load-config.ts');
  ui.print(roleYaml(namespaceOf(target, await loadConfig(paths.config))).trimEnd());
}

function renderResult(result: ProviderResult, { ui }: CommandContext): readonly string[] {
  const mark = result.enabled ? ui.paint('good', 'enabled') : ui.paint('bad', result.slow === undefined ? 'disabled' : 'slow');
  const width = Math.max(0, ...result.details.map(([label]) => label.length));
  return [
    `${ui.paint('strong', result.name)}: ${mark}. ${oneLine(result.summary)}`,
    ...result.details.map(([label, value]) => `  ${padTo(label, width)}  ${oneLine(value)}`),
    ...result.remedies.map((remedy) => `  ${ui.paint('busy', '→')} ${oneLine(remedy)}`),
  ];
}
