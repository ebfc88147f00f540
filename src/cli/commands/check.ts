import type { ProviderCheck } from '../../providers/provider.ts';
import { systemRandom } from '../../shared/random.ts';
import type { CommandContext } from '../context.ts';
import { oneLine, padTo } from '../display-text.ts';

interface CheckArgs {
  readonly place: string | undefined;
  readonly json: boolean;
}

type PlaceCheck = ProviderCheck & { readonly name: string };

/** `svc check`: looks at each place from here and now, without the controller. */
export async function check(args: CheckArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const { openProvider, providerNames } = await import('../../providers/registry.ts');
  const { loadConfig } = await import('../../spec/load-config.ts');
  const { loadSshPools } = await import('../../spec/load-ssh-pools.ts');
  const { paths, clock, signal } = context;
  const providerContext = {
    paths,
    clock,
    random: systemRandom,
    config: async () => loadConfig(paths.config),
    sshPools: async () => loadSshPools(paths.sshPools),
  };
  const places: PlaceCheck[] = [];
  for (const name of args.place === undefined ? providerNames : [args.place.toLowerCase()]) {
    const provider = await openProvider(name, providerContext);
    places.push({ name: provider.name, ...(await provider.check({ signal })) });
  }
  if (args.json) ui.json({ places });
  else for (const place of places) for (const line of renderPlace(place, context)) ui.print(line);
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
