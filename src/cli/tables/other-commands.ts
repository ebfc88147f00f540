import { defineCommand, type Command } from '../command.ts';
import { envOptions, json, yes } from './common-options.ts';

const start = defineCommand({
  path: ['controller', 'start'],
  summary: 'Start the controller, if it does not run',
  description:
    'Not needed as a rule: the first service starts it. With --foreground the command becomes the controller and logs to its output, as service managers want it.',
  arguments: {},
  options: { foreground: { kind: 'flag', summary: 'run it in this process, until it is stopped or idle' }, json },
  examples: ['svc controller start'],
  run: async (args, context) => (await import('../commands/controller.ts')).controllerStart(args, context),
});

const stop = defineCommand({
  path: ['controller', 'stop'],
  summary: 'Stop the controller',
  description:
    'It is refused while there are services, unless they are to go on without it: --keep-services. In a cluster its balancers and objects stay.',
  arguments: {},
  options: {
    keepServices: {
      kind: 'flag',
      summary: 'leave services running; the next command starts a controller, which takes them over',
    },
    json,
  },
  examples: ['svc controller stop', 'svc controller stop --keep-services'],
  run: async (args, context) => (await import('../commands/controller.ts')).controllerStop(args, context),
});

const restart = defineCommand({
  path: ['controller', 'restart'],
  summary: 'Restart the controller and the processes of services with the present code',
  description:
    'Processes of services that run the same code already are left alone. Services go on, and no request is lost: each balancer starts its successor and hands its port over. A newer version of svc does this by itself with the first command.',
  arguments: {},
  options: { json },
  examples: ['svc controller restart'],
  run: async (args, context) => (await import('../commands/controller.ts')).controllerRestart(args, context),
});

const controllerStatus = defineCommand({
  path: ['controller', 'status'],
  summary: 'Show whether the controller runs, and where its log is',
  description: 'Also where it contradicts config.yaml, and what to do about that. Exits with 3 when it does not run.',
  arguments: {},
  options: { json },
  examples: ['svc controller status'],
  run: async (args, context) => (await import('../commands/controller-status.ts')).controllerStatus(args, context),
});

const install = defineCommand({
  path: ['controller', 'install'],
  summary: 'Have this machine start the controller after a reboot',
  description:
    'Services are then served again without a command. Where systemd runs, it gets a unit (of root, or of the user, with lingering), and also restarts a crashed controller. Otherwise the crontab gets a line. The controller gets PATH, HOME, SVC_HOME and the variables that lead to credentials, as they are now, but no secrets. Run it again when they change, or when svc was moved.',
  arguments: {},
  options: { json },
  examples: ['svc controller install'],
  run: async (args, context) => (await import('../commands/controller-install.ts')).controllerInstall(args, context),
});

const uninstall = defineCommand({
  path: ['controller', 'uninstall'],
  summary: 'Undo svc controller install',
  description: 'A running controller and its services go on.',
  arguments: {},
  options: { json },
  examples: ['svc controller uninstall'],
  run: async (args, context) => (await import('../commands/controller-install.ts')).controllerUninstall(args, context),
});

const backup = defineCommand({
  path: ['controller', 'backup'],
  summary: 'Write the state of the controller, with the files of its services, to one archive',
  description:
    'The controller and its services go on. The archive has the values of secrets; its mode is 0600. Logs, machines of this computer and files outside of SVC_HOME are not in it. Only for a controller on this machine.',
  arguments: { file: { kind: 'one', label: 'FILE', completes: 'file', summary: 'archive to write (.tar.gz); it must not exist' } },
  options: { json },
  examples: ['svc controller backup svc-backup.tar.gz'],
  run: async (args, context) => (await import('../commands/controller-backup.ts')).controllerBackup(args, context),
});

const restore = defineCommand({
  path: ['controller', 'restore'],
  summary: 'Put a backup into SVC_HOME',
  description:
    'It is refused while a controller runs. Files that the backup replaces are kept in a folder that the command names. Services come up with the next command.',
  arguments: { file: { kind: 'one', label: 'FILE', completes: 'file', summary: 'archive that svc controller backup has written' } },
  options: { json },
  examples: ['svc controller restore svc-backup.tar.gz'],
  run: async (args, context) => (await import('../commands/controller-backup.ts')).controllerRestore(args, context),
});

const sweep = defineCommand({
  path: ['controller', 'sweep'],
  summary: 'Remove what is left of services and clusters that the state database does not know',
  description:
    'After state.db was emptied, replaced or restored from an older copy, it may lack services and clusters that still run. svc serve status names them. This command ends their processes, destroys their machines and deletes their files. It does not touch what state.db knows.',
  arguments: {},
  options: { yes, json },
  destructive: true,
  examples: ['svc controller sweep', 'svc controller sweep --yes'],
  run: async (args, context) => (await import('../commands/controller.ts')).controllerSweep(args, context),
});

const upgrade = defineCommand({
  path: ['controller', 'upgrade'],
  summary: 'Bring the program of this version to the machine of the controller',
  description:
    'Also its configuration as it is here now. In a cluster it applies config.yaml with the image that is named there. Services go on, and no request is lost. A controller on this machine needs it not: the first command of a newer version replaces it.',
  arguments: {},
  options: { json },
  examples: ['svc controller upgrade'],
  run: async (args, context) => (await import('../commands/controller.ts')).controllerUpgrade(args, context),
});

const controllerDown = defineCommand({
  path: ['controller', 'down'],
  summary: 'Give back the machine of the controller',
  description: 'Of one in a cluster: remove its objects there. It is refused while there are services.',
  arguments: {},
  options: {
    yes,
    purge: {
      kind: 'flag',
      summary: 'also when the controller does not answer, with every machine that it launched at any provider',
    },
    json,
  },
  examples: ['svc controller down', 'svc controller down --purge --yes'],
  run: async (args, context) => (await import('../commands/controller.ts')).controllerDown(args, context),
});

const manifests = defineCommand({
  path: ['controller', 'manifests'],
  summary: 'Print the objects of a controller that survives its node, for Kubernetes',
  description:
    'For who keeps what runs in a cluster in a repository; svc serve up makes the same by itself where serve.controller.high_availability is true. The same configuration gives the same text. Secrets are left out unless they are asked for.',
  arguments: {},
  options: {
    context: { kind: 'value', label: 'CONTEXT', summary: 'of the kubeconfig; by default the one that the configuration leads to' },
    output: { kind: 'value', short: 'o', label: 'FOLDER', completes: 'folder', summary: 'write one file per object there' },
    withSecrets: { kind: 'flag', summary: 'with the Secrets: they let their reader act as the controller' },
    json,
  },
  examples: [
    'svc controller manifests',
    'svc controller manifests --context prod -o deploy',
    'svc controller manifests --with-secrets | kubectl apply --server-side -f -',
  ],
  run: async (args, context) => (await import('../commands/controller-manifests.ts')).controllerManifests(args, context),
});

const check = defineCommand({
  path: ['check'],
  summary: 'Show where replicas can run, and what to do where they cannot',
  arguments: {
    providers: {
      kind: 'many',
      label: 'PROVIDER',
      completes: 'provider',
      summary: 'only these, or parts of them: k8s, k8s/CONTEXT, ssh/POOL, ssh/HOST, aws/REGION',
    },
  },
  options: { json, role: { kind: 'flag', summary: 'print what svc needs on a Kubernetes cluster, for: kubectl apply -f -' } },
  examples: ['svc check', 'svc check k8s/prod ssh/lab', 'svc check local --json', 'svc check kubernetes --role'],
  run: async (args, context) => (await import('../commands/check.ts')).check(args, context),
});

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
  run: async (args, context) => (await import('../commands/catalog.ts')).offers(args, context),
});

/** Its name in SkyPilot. */
const showGpus = defineCommand({
  path: ['show-gpus'],
  ...offersShape,
  examples: ['svc show-gpus H100:8'],
  hidden: true,
  run: async (args, context) => (await import('../commands/catalog.ts')).offers(args, context),
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
  run: async (args, context) => (await import('../commands/catalog.ts')).catalogUpdate(args, context),
});

const simulate = defineCommand({
  path: ['simulate'],
  summary: 'Compare autoscalers and spot policies over recorded load, in virtual time',
  description:
    'Runs the decisions of svc, and those of other tools, over a trace of requests or of spot capacity, and prints what each costs and how requests fare. It starts nothing and costs nothing. Policies over requests: request_rate, concurrency, forecast, skyserve, skyserve_quick, knative, kubernetes, fixed_peak. Policies over spot capacity: hedge, dynamic_fallback, even_spread, round_robin, on_demand. With both traces, autoscaler and spot policy act in one run: each name runs with the other policy of the file, and a pair such as forecast+round_robin with neither. The policy of the file itself and the bound are always shown. docs/guides/choosing-a-policy.md has the formats of traces and explains a result.',
  arguments: {
    target: {
      kind: 'one',
      label: 'FILE|NAME',
      completes: 'file',
      summary: 'service file (YAML) with the policy, its bounds and its target; or a running service, whose last day is replayed',
    },
  },
  options: {
    requests: { kind: 'value', label: 'TRACE', completes: 'file', summary: 'requests over time, also packed with gzip' },
    spot: {
      kind: 'values',
      label: 'TRACE',
      completes: 'file',
      summary: 'spot capacity of zones over time; may be repeated; with requests, both act in one run',
    },
    with: {
      kind: 'value',
      label: 'FILE',
      completes: 'file',
      summary: 'replay the running service NAME with the policy of this file instead of its own',
    },
    compare: {
      kind: 'value',
      label: 'A,B,…',
      summary: 'only these policies, or pairs such as forecast+hedge, beside the one of the file; otherwise all',
    },
    set: {
      kind: 'values',
      label: 'FIELD=VALUE',
      summary: 'another value in replica_policy of the file, none to remove the field; may be repeated',
    },
    coldStart: { kind: 'value', label: 'SECONDS', summary: 'from the launch of a replica until it is ready; 183 when absent' },
    capacity: {
      kind: 'value',
      label: 'QPS',
      summary: 'requests per second that a replica serves at most; target_qps_per_replica / 0.7 when absent',
    },
    replicas: {
      kind: 'integer',
      label: 'N',
      min: 1,
      max: 1_000,
      summary: 'ready replicas needed over spot capacity without requests; min_replicas when absent',
    },
    spotPrice: {
      kind: 'value',
      label: 'SHARE',
      summary: "price of a spot replica relative to one on demand; when absent, that of the trace or of the file's machines, else 0.33",
    },
    price: {
      kind: 'value',
      label: 'USD',
      summary:
        "of a replica on demand per hour, to show money too; when absent, that of a running service's replicas, or of the file's machines",
    },
    html: {
      kind: 'value',
      label: 'FILE',
      completes: 'file',
      summary: 'also write a report with charts there: one file that loads nothing',
    },
    ...envOptions,
    json,
  },
  examples: [
    'svc simulate service.yaml --requests day.csv',
    'svc simulate service.yaml --requests access.log --set autoscaler=forecast --compare skyserve,knative --html report.html',
    'svc simulate chat --set max_replicas=20',
    'svc simulate service.yaml --spot zones.json --replicas 4 --cold-start 120 --json',
    'svc simulate service.yaml --requests day.csv --spot zones.json --compare forecast,on_demand',
  ],
  run: async (args, context) => (await import('../commands/simulate.ts')).simulate({ ...args, workdir: undefined }, context),
});

const completion = defineCommand({
  path: ['completion'],
  summary: 'Print the script that completes `svc` at Tab',
  description:
    'It knows commands, options, and the names of services and clusters. Put the line of the example into the start file of the shell.',
  arguments: { shell: { kind: 'one', label: 'SHELL', completes: 'shell', summary: 'bash, zsh or fish' } },
  options: {},
  examples: ['source <(svc completion bash)', 'source <(svc completion zsh)', 'svc completion fish | source'],
  run: async (args, context) => (await import('../commands/completion.ts')).completion(args, context),
});

const complete = defineCommand({
  path: ['complete'],
  summary: 'Print what may follow the given words (called by the completion scripts)',
  arguments: { words: { kind: 'afterDashes', label: '-- WORDS', summary: 'what stands between `svc` and the cursor' } },
  options: {},
  examples: [],
  hidden: true,
  run: async (args, context) => (await import('../commands/complete.ts')).complete(args, context),
});

/** `svc controller …`, `svc check`, `svc offers`, `svc catalog …`, `svc simulate` and `svc completion`. */
export const otherCommands: readonly Command[] = [
  start,
  stop,
  restart,
  controllerStatus,
  install,
  uninstall,
  backup,
  restore,
  sweep,
  upgrade,
  controllerDown,
  manifests,
  check,
  offers,
  showGpus,
  update,
  simulate,
  completion,
  complete,
];
