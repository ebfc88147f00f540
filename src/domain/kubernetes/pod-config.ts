import { didYouMean } from '../../shared/did-you-mean.ts';
import { isObject } from '../../shared/json.ts';

/** Name of the container that runs a replica's program. Other containers belong to the user. */
export const mainContainer = 'main';

/** Names of the volumes that svc adds. */
export const ownVolumes = { work: 'svc', sharedMemory: 'svc-shm' } as const;

/** Mount path of the replica's own volume. Everything else may be read-only. */
export const workFolder = '/svc';

interface PodConfigProblem {
  readonly path: readonly (string | number)[];
  /** Whether the field itself is wrong, rather than its value. */
  readonly isKey: boolean;
  readonly message: string;
  readonly hint?: string;
}

type Shape = 'map' | 'list' | 'text' | 'number' | 'flag' | 'any';
type Fields = Readonly<Record<string, Shape>>;

const shapeWords: Readonly<Record<Exclude<Shape, 'any'>, string>> = {
  map: 'a map of fields',
  list: 'a list',
  text: 'text',
  number: 'a number',
  flag: 'true or false',
};

const podFields: Fields = { apiVersion: 'text', kind: 'text', metadata: 'map', spec: 'map' };

const metadataFields: Fields = { labels: 'map', annotations: 'map' };

const named = (shape: Shape, names: string): Fields => Object.fromEntries(names.split(' ').map((name) => [name, shape]));

/** Fields of a pod's spec in Kubernetes up to 1.34. */
const specFields: Fields = {
  ...named('map', 'affinity dnsConfig nodeSelector os overhead resources securityContext'),
  ...named('list', 'containers hostAliases imagePullSecrets initContainers readinessGates resourceClaims schedulingGates tolerations'),
  ...named('list', 'topologySpreadConstraints volumes'),
  ...named('text', 'dnsPolicy hostname hostnameOverride nodeName preemptionPolicy priorityClassName restartPolicy runtimeClassName'),
  ...named('text', 'schedulerName serviceAccount serviceAccountName subdomain'),
  ...named('number', 'activeDeadlineSeconds priority terminationGracePeriodSeconds'),
  ...named('flag', 'automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID hostUsers setHostnameAsFQDN'),
  ...named('flag', 'shareProcessNamespace'),
};

const containerFields: Fields = {
  ...named('map', 'lifecycle livenessProbe readinessProbe resources securityContext startupProbe'),
  ...named('list', 'args command env envFrom ports resizePolicy restartPolicyRules volumeDevices volumeMounts'),
  ...named('text', 'image imagePullPolicy name restartPolicy terminationMessagePath terminationMessagePolicy workingDir'),
  ...named('flag', 'stdin stdinOnce tty'),
};

/** All reasons why a partial pod cannot be merged into the replica's pod. */
export function podConfigProblems(pod: Readonly<Record<string, unknown>>): readonly PodConfigProblem[] {
  const problems = fieldProblems(pod, podFields, [], 'a pod');
  const { kind, metadata, spec } = pod;
  if (typeof kind === 'string' && kind !== 'Pod') problems.push(value(['kind'], `must be Pod, found '${kind}'`));
  if (isObject(metadata)) problems.push(...metadataProblems(metadata));
  if (isObject(spec)) problems.push(...specProblems(spec));
  return problems;
}

const value = (path: PodConfigProblem['path'], message: string, hint?: string): PodConfigProblem => ({
  path,
  isKey: false,
  message,
  ...(hint !== undefined && { hint }),
});
const key = (path: PodConfigProblem['path'], message: string, hint?: string): PodConfigProblem => ({
  ...value(path, message, hint),
  isKey: true,
});

function fieldProblems(
  map: Readonly<Record<string, unknown>>,
  fields: Fields,
  path: PodConfigProblem['path'],
  what: string,
  without: Readonly<Record<string, string>> = {},
): PodConfigProblem[] {
  return Object.entries(map).flatMap(([name, given]): PodConfigProblem[] => {
    const refused = without[name];
    if (refused !== undefined) return [key([...path, name], refused)];
    const shape = fields[name];
    if (shape === undefined) {
      const meant = didYouMean(name, Object.keys(fields));
      return [key([...path, name], `${what} has no field '${name}'`, meant === undefined ? undefined : `Did you mean '${meant}'?`)];
    }
    // A merge patch removes a field with null.
    if (given === null || shape === 'any' || hasShape(given, shape)) return [];
    return [value([...path, name], `expected ${shapeWords[shape]}`)];
  });
}

function hasShape(given: unknown, shape: Exclude<Shape, 'any'>): boolean {
  if (shape === 'map') return isObject(given);
  if (shape === 'list') return Array.isArray(given);
  return typeof given === { text: 'string', number: 'number', flag: 'boolean' }[shape];
}

const ourMetadata: Readonly<Record<string, string>> = {
  name: 'pods are named by svc, which finds them by their names',
  generateName: 'pods are named by svc, which finds them by their names',
  namespace: 'the namespace is for the field namespace of the configuration to say',
  ownerReferences: 'pods belong to an object of svc, with which they go',
  finalizers: 'pods could not be removed any more',
};

function metadataProblems(metadata: Readonly<Record<string, unknown>>): readonly PodConfigProblem[] {
  const problems = fieldProblems(metadata, metadataFields, ['metadata'], 'the metadata of a pod here', ourMetadata);
  for (const field of ['labels', 'annotations'] as const) {
    const map = metadata[field];
    if (!isObject(map)) continue;
    for (const [name, given] of Object.entries(map)) {
      const path = ['metadata', field, name];
      if (name.startsWith('svc-')) problems.push(key(path, 'names that begin with svc- are what svc finds its pods by'));
      else if (typeof given !== 'string') problems.push(value(path, 'expected text'));
    }
  }
  return problems;
}

function specProblems(spec: Readonly<Record<string, unknown>>): readonly PodConfigProblem[] {
  const problems = fieldProblems(spec, specFields, ['spec'], 'the spec of a pod', {
    ephemeralContainers: 'containers for debugging are put into pods that run: kubectl debug',
  });
  const { restartPolicy, shareProcessNamespace, containers, initContainers, volumes, nodeSelector, tolerations } = spec;
  if (typeof restartPolicy === 'string' && restartPolicy !== 'Never')
    problems.push(
      value(
        ['spec', 'restartPolicy'],
        `must be Never, found '${restartPolicy}': svc replaces replicas itself, and in a restarted container nothing would run`,
      ),
    );
  if (shareProcessNamespace === true)
    problems.push(
      value(
        ['spec', 'shareProcessNamespace'],
        "must be false: process 1 of the container must be svc's own, which collects ended processes",
      ),
    );
  if (isObject(nodeSelector))
    for (const [name, given] of Object.entries(nodeSelector))
      if (typeof given !== 'string') problems.push(value(['spec', 'nodeSelector', name], 'expected text'));
  problems.push(...containerProblems(containers, 'containers'), ...containerProblems(initContainers, 'initContainers'));
  problems.push(...mapsProblems(tolerations, ['spec', 'tolerations']));
  for (const [index, volume] of listed(volumes).entries()) {
    const path = ['spec', 'volumes', index];
    if (!isObject(volume) || typeof volume['name'] !== 'string') problems.push(value(path, 'expected a map with a name'));
    else if (Object.values<string>(ownVolumes).includes(volume['name']))
      problems.push(value([...path, 'name'], `'${volume['name']}' is a volume of svc's own`));
  }
  return problems;
}

const listed = (given: unknown): readonly unknown[] => (Array.isArray(given) ? given : []);

function mapsProblems(given: unknown, path: PodConfigProblem['path']): readonly PodConfigProblem[] {
  return listed(given).flatMap((one, index) => (isObject(one) ? [] : [value([...path, index], 'expected a map of fields')]));
}

const whyNotCommand = 'the program of a replica is started by svc, as run says: with another command, nothing would run';
const insteadOfCommand = 'Write the command below run, or put it into a container of its own.';

function containerProblems(containers: unknown, field: 'containers' | 'initContainers'): readonly PodConfigProblem[] {
  const seen = new Set<string>();
  return listed(containers).flatMap((container, index): readonly PodConfigProblem[] => {
    const path = ['spec', field, index];
    if (!isObject(container)) return [value(path, 'expected a map of fields')];
    const problems = fieldProblems(container, containerFields, path, 'a container');
    const name = container['name'] ?? (field === 'containers' ? mainContainer : undefined);
    if (name === undefined) problems.push(value(path, "needs 'name'"));
    if (typeof name !== 'string') return problems;
    if (seen.has(name)) problems.push(value(path, `two containers are called '${name}'`, name === mainContainer ? mainHint : undefined));
    seen.add(name);
    if (field === 'initContainers' && name === mainContainer)
      problems.push(value([...path, 'name'], `'${mainContainer}' is the container that the replica's program runs in`));
    else if (name === mainContainer) problems.push(...mainProblems(container, path));
    else if (container['image'] === undefined) problems.push(value(path, "needs 'image'"));
    problems.push(...mountProblems(container, path));
    return problems;
  });
}

const mainHint = `One without a name is '${mainContainer}', the one of the replica's program.`;

function mainProblems(container: Readonly<Record<string, unknown>>, path: PodConfigProblem['path']): readonly PodConfigProblem[] {
  return (['command', 'args'] as const).flatMap((field) =>
    container[field] === undefined
      ? []
      : [key([...path, field], `${field} of the container '${mainContainer}': ${whyNotCommand}`, insteadOfCommand)],
  );
}

function mountProblems(container: Readonly<Record<string, unknown>>, path: PodConfigProblem['path']): readonly PodConfigProblem[] {
  return [
    ...mapsProblems(container['env'], [...path, 'env']),
    ...listed(container['volumeMounts']).flatMap((mount, index): readonly PodConfigProblem[] => {
      const at = [...path, 'volumeMounts', index];
      if (!isObject(mount) || typeof mount['mountPath'] !== 'string') return [value(at, 'expected a map with a name and a mountPath')];
      const folder = mount['mountPath'].replace(/\/+$/, '');
      return folder === workFolder ? [value([...at, 'mountPath'], `${workFolder} is where svc keeps a replica's files`)] : [];
    }),
  ];
}
