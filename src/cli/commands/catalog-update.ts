import type { CommandContext } from '../context.ts';

interface CatalogUpdateArgs {
  readonly cloud: string | undefined;
  readonly from: string | undefined;
  readonly region: readonly string[];
  readonly json: boolean;
}

/** `svc catalog update`: replaces price tables by newer ones. */
export async function catalogUpdate(args: CatalogUpdateArgs, context: CommandContext): Promise<void> {
  const { updateCatalog } = await import('../../catalog/update-catalog.ts');
  const { ui, paths, clock, cwd, signal } = context;
  const progress = ui.progress();
  try {
    const updates = await updateCatalog(
      { cloud: args.cloud?.toLowerCase(), from: args.from, regions: args.region.length === 0 ? undefined : args.region },
      { catalogDir: paths.catalogDir, cwd, now: clock.now(), signal, onProgress: (text) => progress.now(text) },
    );
    progress.stop();
    if (args.json) {
      ui.json({ updates });
      return;
    }
    for (const { cloud, types, regions, date, badRows, skippedRows } of updates) {
      const left = [
        ...(badRows === 0 ? [] : [`${badRows} rows could not be read`]),
        ...(skippedRows === 0 ? [] : [`${skippedRows} rows describe nothing that svc can use`]),
      ];
      ui.print(
        `${cloud}: ${types} machine types in ${regions} regions, prices of ${date}${left.length === 0 ? '' : `; ${left.join(', ')}`}.`,
      );
    }
  } finally {
    progress.stop();
  }
}
