import type { ListedType } from '../../catalog/list-machines.ts';
import { suggestAccelerator } from '../../domain/accelerators.ts';
import type { Resources } from '../../domain/task.ts';
import type { ProviderName } from '../../providers/registry.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import { systemRandom } from '../../shared/random.ts';
import type { CommandContext } from '../command.ts';
import { type Column, renderTable } from '../listing/table.ts';

interface OffersArgs {
  readonly gpu: string | undefined;
  readonly gpus: string | undefined;
  readonly infra: string | undefined;
  readonly cpus: string | undefined;
  readonly memory: string | undefined;
  readonly instanceType: string | undefined;
  readonly useSpot: boolean;
  readonly all: boolean;
  readonly json: boolean;
}

/** `svc offers`: lists price tables, and offers of providers without one. Calls no cloud, needs no credentials. */
export async function offers(args: OffersArgs, context: CommandContext): Promise<void> {
  const { listMachines } = await import('../../catalog/list-machines.ts');
  const { PriceTables } = await import('../../catalog/price-tables.ts');
  const { catalogNotice } = await import('../../catalog/price-table.ts');
  const { providerNames } = await import('../../providers/registry.ts');
  const { readResourceOptions } = await import('../../spec/read-resource-options.ts');
  const { ui, paths, clock } = context;
  if (args.gpu !== undefined && args.gpus !== undefined)
    throw new SvcError('SVC_USAGE', 'GPUs are given twice, as a word and with --gpus.');
  const gpus = args.gpu ?? args.gpus;
  const resources = readResourceOptions({ ...args, gpus });
  // `H100` lists machines with any number of H100; `H100:1` lists those with one.
  const acceleratorName = gpus !== undefined && !gpus.includes(':') ? resources.accelerator?.name : undefined;
  const filtered = gpus !== undefined || [args.cpus, args.memory, args.instanceType].some((one) => one !== undefined);

  const priceTables = new PriceTables(paths.catalogDir);
  const clouds = (await priceTables.clouds()).filter((cloud) => resources.cloud === undefined || resources.cloud === cloud);
  const tables = (await Promise.all(clouds.map(async (cloud) => priceTables.table(cloud)))).filter((table) => table !== undefined);
  const listed = listMachines(tables, {
    resources: acceleratorName === undefined ? resources : { ...resources, accelerator: undefined },
    acceleratorName,
    acceleratorsOnly: !filtered,
    allRegions: args.all,
  });
  const withoutTable = providerNames.filter((name) => !tables.some(({ cloud }) => cloud === name));
  // These providers can list offers only for given resources.
  const own = filtered ? await offersOfProviders(withoutTable, resources, context) : [];
  const found = [...own, ...listed];
  if (found.length === 0) {
    const { whyNoOffer } = await import('../../catalog/why-no-offer.ts');
    const reasons = tables.map((table) => whyNoOffer(table, resources, {}));
    throw nothingFound(resources.accelerator?.name, resources.cloud, reasons);
  }
  const shown = new Set(found.map(({ cloud }) => cloud));
  const notes = tables
    .filter(({ cloud }) => shown.has(cloud))
    .flatMap((table) => {
      const notice = catalogNotice(table, clock.now());
      const planned = providerNames.some((name) => name === table.cloud)
        ? []
        : [`${table.cloud}: catalogue only: svc has no provider for it yet.`];
      return notice === undefined ? planned : [...planned, notice];
    });
  if (args.json) {
    ui.json({ offers: found, notes });
    return;
  }
  for (const line of renderOffers(found, ui.outWidth)) ui.print(line);
  const marks = found.some(({ estimated }) => estimated)
    ? ['~ marks a price that was worked out from those of other sizes and regions.']
    : [];
  for (const note of [...marks, ...notes]) ui.say(note);
}

/** Offers of providers without a price table: the user's own machines. */
async function offersOfProviders(
  names: readonly ProviderName[],
  resources: Resources,
  context: CommandContext,
): Promise<readonly ListedType[]> {
  const { openProvider } = await import('../../providers/registry.ts');
  const { loadConfig } = await import('../../spec/load-config.ts');
  const { loadSshPools } = await import('../../spec/load-ssh-pools.ts');
  const { paths, clock, signal } = context;
  const found: ListedType[] = [];
  for (const name of names.filter((one) => resources.cloud === undefined || resources.cloud === one)) {
    const provider = await openProvider(name, {
      paths,
      clock,
      random: systemRandom,
      config: async () => loadConfig(paths.config),
      sshPools: async () => loadSshPools(paths.sshPools),
      fence: noFence,
    });
    for (const offer of (await provider.offers(resources, { signal })).offers) {
      const { region, instanceType, cpus, memoryGb, accelerator, spot, hourlyUsd } = offer;
      const price = spot ? { onDemandUsd: undefined, spotUsd: hourlyUsd } : { onDemandUsd: hourlyUsd, spotUsd: undefined };
      const gpu = accelerator === undefined ? undefined : { ...accelerator, memoryGb: accelerator.memoryGb };
      found.push({
        cloud: name,
        region,
        name: instanceType,
        cpus,
        memoryGb,
        accelerator: gpu,
        architecture: 'x86_64',
        estimated: false,
        ...price,
      });
    }
  }
  return found;
}

function nothingFound(accelerator: string | undefined, cloud: string | undefined, reasons: readonly string[]): SvcError {
  if (cloud !== undefined && reasons.length === 0) {
    return new SvcError('SVC_NO_PLACE', `There is no table of prices of '${cloud}'.`, {
      hint: `Run: svc catalog update ${cloud} --from URL|FOLDER`,
    });
  }
  const meant = accelerator === undefined ? undefined : suggestAccelerator(accelerator);
  const suggestion = meant === undefined ? reasons.map((reason) => `\n  ${reason}`).join('') : ` Did you mean '${meant}'?`;
  return new SvcError('SVC_NO_PLACE', `No machine in the tables of prices is like that.${suggestion}`, {
    hint: 'Run: svc offers; it shows what there is',
  });
}

const columns: readonly Column<ListedType>[] = [
  { title: 'GPU', value: ({ accelerator }) => accelerator?.name ?? '' },
  { title: 'QTY', value: ({ accelerator }) => (accelerator === undefined ? '' : String(accelerator.count)) },
  { title: 'CLOUD', value: ({ cloud }) => cloud },
  { title: 'INSTANCE_TYPE', value: ({ name }) => name },
  { title: 'DEVICE_MEM', value: ({ accelerator }) => gb(accelerator?.memoryGb), dropOrder: 2 },
  { title: 'vCPUs', value: ({ cpus }) => String(cpus), dropOrder: 4 },
  { title: 'HOST_MEM', value: ({ memoryGb }) => gb(memoryGb), dropOrder: 3 },
  { title: 'HOURLY_PRICE', value: ({ onDemandUsd, estimated }) => `${estimated ? '~' : ''}${dollars(onDemandUsd)}` },
  { title: 'HOURLY_SPOT_PRICE', value: ({ spotUsd }) => dollars(spotUsd), dropOrder: 1 },
  { title: 'REGION', value: ({ region }) => region, shrinksTo: 8 },
];

function renderOffers(listed: readonly ListedType[], width: number): readonly string[] {
  return renderTable(columns, listed, width);
}

function gb(amount: number | undefined): string {
  return amount === undefined ? '' : `${amount}GB`;
}

function dollars(amount: number | undefined): string {
  return amount === undefined ? '' : `$ ${amount.toFixed(amount < 0.1 ? 4 : 3)}`;
}

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
