import { defineCommand, type Command } from '../command.ts';
import { json } from './common-options.ts';

const offersShape = {
  summary: 'Show machines with their prices: what the tables of prices have, cheapest first',
  description:
    'Without options, machines with GPUs, each type in its cheapest region. `H100` finds machines with any number of them, `H100:8` those with eight. Prices are for the machine without its disk; nothing is asked of a cloud.',
  arguments: { gpu: { kind: 'optional', label: 'GPU', summary: 'the same as --gpus' } },
  options: {
    gpus: { kind: 'value', label: 'GPU[:COUNT]', summary: 'with these GPUs, or with GPUs of so much memory: H100:8, 80GB+' },
    infra: { kind: 'value', label: 'CLOUD[/REGION]', summary: 'only there: aws or aws/us-east-2' },
    cpus: { kind: 'value', label: 'N[+]', summary: 'with so many vCPUs: 4 or 4+' },
    memory: { kind: 'value', label: 'GB[+]', summary: 'with so much memory: 16 or 16+' },
    instanceType: { kind: 'value', short: 't', label: 'TYPE', summary: 'of this type' },
    useSpot: { kind: 'flag', summary: 'by their spot price; those without a known one are left out' },
    all: { kind: 'flag', short: 'a', alias: 'all-regions', summary: 'every region of each type' },
    json,
  },
} as const;

const offers = defineCommand({
  path: ['offers'],
  ...offersShape,
  examples: [
    'svc offers',
    'svc offers H100:8',
    'svc offers --infra aws/us-east-2 --cpus 4+ --memory 16+',
    'svc offers --gpus A10G --use-spot --all',
  ],
  run: async (args, context) => (await import('../commands/offers.ts')).offers(args, context),
});

/** The name by which users of SkyPilot know it. */
const showGpus = defineCommand({
  path: ['show-gpus'],
  ...offersShape,
  examples: ['svc show-gpus H100:8'],
  hidden: true,
  run: async (args, context) => (await import('../commands/offers.ts')).offers(args, context),
});

const update = defineCommand({
  path: ['catalog', 'update'],
  summary: 'Replace tables of prices by newer ones',
  description:
    "Without --from, prices on demand are read from AWS's own public list: some hundred MB for each region, so name those you use with --region. With --from, one cloud or all of a catalogue in SkyPilot's format (CLOUD/vms.csv), so that the machines of clouds for which svc has no provider can at least be seen. A list that cannot be read changes nothing.",
  arguments: { cloud: { kind: 'optional', label: 'CLOUD', summary: 'the cloud whose table it is: aws, gcp, lambda, …' } },
  options: {
    from: { kind: 'value', label: 'URL|FOLDER', completes: 'folder', summary: "a catalogue in SkyPilot's format" },
    region: { kind: 'values', label: 'REGION', summary: "of AWS's own list, only this region; may be repeated" },
    json,
  },
  examples: [
    'svc catalog update aws --region us-east-1 --region eu-west-1',
    'svc catalog update gcp --from https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8',
    'svc catalog update --from ~/skypilot-catalog/catalogs/v8',
  ],
  run: async (args, context) => (await import('../commands/catalog-update.ts')).catalogUpdate(args, context),
});

/** `svc offers` and `svc catalog …`. */
export const catalogCommands: readonly Command[] = [offers, showGpus, update];
