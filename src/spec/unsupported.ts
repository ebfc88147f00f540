import { posix } from 'node:path';
import type { FileMount, Task } from '../domain/task.ts';
import { quote, redact } from '../shared/text.ts';
import { mountPath } from './read/mounts.ts';
import { openTask, type TaskSource } from './task-document.ts';
import { entryAt, nodeAt, type Path, type YamlNode } from './yaml/node.ts';

/** Features that a file can request and that a version or a provider may lack. */
export const features = [
  'tls',
  'bucket_mounts',
  'other_buckets',
  'mounts_above_workdir',
  'git_workdir',
  'volumes_elsewhere',
  'target_qps_per_accelerator',
  'balancer_threads',
  'metrics_port',
  'http_redirect_port',
  'client_ca',
] as const;
type Feature = (typeof features)[number];

/** The supported features. May also contain fields in `otherFields` of the task, by their name in the file. */
interface DeployAbilities {
  readonly can: ReadonlySet<Feature | (string & {})>;
}

/** What this version supports beyond the basic features. */
const currentAbilities: DeployAbilities = {
  can: new Set(['tls', 'target_qps_per_accelerator', 'balancer_threads', 'metrics_port', 'http_redirect_port', 'client_ca']),
};

/** The same with edge proxies, which serve endpoints behind a Service with exactly the endpoints' ports. */
export const edgeProxyAbilities: DeployAbilities = {
  can: new Set([...currentAbilities.can].filter((name) => !['metrics_port', 'http_redirect_port', 'client_ca'].includes(name))),
};

interface UnsupportedFeature {
  readonly field: string;
  readonly sentence: string;
}

/** Fields of a valid task that these abilities would ignore. Empty: deployable, if a provider offers its machines. */
export function unsupportedFeatures(task: Task, abilities: DeployAbilities = currentAbilities): readonly UnsupportedFeature[] {
  const requested: readonly (UnsupportedFeature & { readonly feature: string; readonly used: boolean })[] = [
    ...serviceFeatures(task),
    ...mountFeatures(task),
    ...volumeFeatures(task),
    ...otherFeatures(task),
  ];
  return requested.filter(({ used, feature }) => used && !abilities.can.has(feature)).map(({ field, sentence }) => ({ field, sentence }));
}

/** Throws SVC_NOT_SUPPORTED with each occurrence of such a field. `source`: the text that the task was parsed from. */
export function refuseUnsupported(task: Task, source: TaskSource, abilities: DeployAbilities = currentAbilities): void {
  const found = unsupportedFeatures(task, abilities);
  if (found.length === 0) return;
  const { root, report } = openTask(source);
  for (const { field, sentence } of found) {
    for (const path of pathsOf(field, root)) {
      const name = entryAt(root, path)?.keyText ?? field;
      report.atKey(path, `this version cannot act on ${quote(name)}`, sentence);
    }
  }
  const fields = [...new Set(found.map(({ field }) => field))].join(', ');
  // Mount targets may contain the values of variables.
  const secrets = Object.values(task.secrets);
  throw report.toError('SVC_NOT_SUPPORTED', 'The task file', {
    message: redact(`This version cannot act on ${fields}.`, secrets),
    hint: redact(`Remove or change: ${fields}`, secrets),
  });
}

/** The paths of a field's occurrences in the file: at least one. */
function pathsOf(field: string, root: YamlNode): readonly Path[] {
  const has = (path: Path): boolean => {
    const node = nodeAt(root, path);
    return node !== undefined && !(node.kind === 'scalar' && node.value === false);
  };
  const [section = '', ...rest] = field.split('.');
  let candidates: readonly Path[] = [[section, ...rest]];
  if (section === 'resources') candidates = alternativesIn(root).map((path) => [...path, ...rest]);
  else if (section === 'file_mounts') candidates = [mountPath(root, rest.join('.'))];
  else if (field === 'pool') candidates = [['pool'], ['service', 'pool']];
  else if (field === 'managed_secrets') candidates = [['managed_secrets'], ['secrets']];
  const found = candidates.filter(has);
  return found.length === 0 ? candidates.slice(0, 1) : found;
}

function alternativesIn(root: YamlNode): readonly Path[] {
  const lists = ['any_of', 'ordered'].flatMap((name) => {
    const node = nodeAt(root, ['resources', name]);
    return node?.kind === 'list' ? node.items.map((_item, index): Path => ['resources', name, index]) : [];
  });
  return [['resources'], ...lists];
}

type RequestedFeature = UnsupportedFeature & { readonly feature: string; readonly used: boolean };

function requestedFeature(feature: Feature | (string & {}), field: string, used: boolean, sentence: string): RequestedFeature {
  return { feature, field, used, sentence };
}

function serviceFeatures({ service }: Task): readonly RequestedFeature[] {
  if (service === undefined) return [];
  const { replicaPolicy: policy, loadBalancer } = service;
  const target = policy.targetQpsPerReplica;
  return [
    requestedFeature(
      'tls',
      'service.tls',
      service.tls !== undefined,
      'The endpoint speaks plain HTTP; put a TLS proxy before it and leave this out.',
    ),
    requestedFeature(
      'target_qps_per_accelerator',
      'service.replica_policy.target_qps_per_replica',
      typeof target === 'object',
      'A target for each accelerator is not there yet; give one number.',
    ),
    requestedFeature(
      'balancer_threads',
      'service.load_balancer.threads',
      (loadBalancer.threads ?? 1) > 1,
      'The balancer has one thread; leave it out.',
    ),
    requestedFeature(
      'metrics_port',
      'service.load_balancer.metrics_port',
      loadBalancer.metricsPort !== undefined,
      'With high_availability the balancers are in the cluster, not on one machine; leave it out: svc serve metrics NAME has the metrics of all of them.',
    ),
    requestedFeature(
      'http_redirect_port',
      'service.load_balancer.http_redirect_port',
      loadBalancer.httpRedirectPort !== undefined,
      'With high_availability clients reach only the ports of endpoints; leave it out.',
    ),
    requestedFeature(
      'client_ca',
      'service.tls.client_ca',
      service.tls?.clientCa !== undefined,
      'With high_availability the balancers do not check certificates of clients; leave it out.',
    ),
  ];
}

const mountField = (mount: FileMount): string => `file_mounts.${mount.target}`;

function mountFeatures({ fileMounts, workdir }: Task): readonly RequestedFeature[] {
  return [
    requestedFeature('git_workdir', 'workdir.url', workdir?.kind === 'git', 'Clone the repository and name its folder.'),
    ...fileMounts.flatMap((mount) => {
      const { source } = mount;
      const isMounted = source.kind === 'bucket' && source.mode !== 'COPY';
      return [
        requestedFeature('bucket_mounts', mountField(mount), isMounted, mountSentence),
        requestedFeature(
          'other_buckets',
          mountField(mount),
          !isMounted && source.kind === 'bucket' && !canFetch(source.uri),
          fetchSentence(source),
        ),
        requestedFeature('mounts_above_workdir', mountField(mount), isAbove(mount.target), aboveSentence),
      ];
    }),
  ];
}

const mountSentence =
  'Buckets are not mounted: a program that reads over the network at every access is slow, and fails with it. Write mode: COPY to have the files on the disk before it starts.';
const aboveSentence = 'Write a target inside the working directory, such as ./data, an absolute one, or one below ~/.';

/** Addresses that machines can fetch from: S3, and single files over HTTPS. */
function canFetch(uri: string): boolean {
  return uri.startsWith('s3://') || (uri.startsWith('https://') && !azureContainer.test(uri));
}

/** SkyPilot treats such an address as an Azure container, not as a file. */
const azureContainer = /^https:\/\/[^/]+\.blob\.core\.windows\.net(?:\/|$)/;

function fetchSentence(source: FileMount['source']): string {
  if (source.kind === 'path') return '';
  const kind = azureContainer.test(source.uri) ? "Azure's containers" : `${/^[a-z0-9+.-]*/i.exec(source.uri)?.[0] ?? ''}://`;
  const what = kind === 'bucket://' ? 'Buckets without a kind' : `Files of ${kind}`;
  return `${what} cannot be fetched. Name an s3:// address, an https:// address of a file, or a local path; or download it in setup.`;
}

function isAbove(target: string): boolean {
  const path = posix.normalize(target);
  return path === '..' || path.startsWith('../') || /^~[^/]/.test(path);
}

/** Providers other than Kubernetes would start the program without its volumes. */
function volumeFeatures({ volumes, resources }: Task): readonly RequestedFeature[] {
  const isOutsideKubernetes = Object.keys(volumes).length > 0 && resources.choices.some(({ cloud }) => cloud !== 'kubernetes');
  const sentence = 'Only Kubernetes has volumes: write infra: k8s, in each alternative of resources.';
  return [requestedFeature('volumes_elsewhere', 'volumes', isOutsideKubernetes, sentence)];
}

const otherSentences: Readonly<Record<string, string>> = {
  pool: 'Pools of workers are not there yet; use replicas of a service.',
  managed_secrets: 'There is no store of secrets yet; name them below secrets and give them with --secret.',
  volumes: 'Disks are not attached; for volumes of Kubernetes, write volumes at the top of the file.',
  config: 'Only config.kubernetes is acted upon; leave out the rest.',
  autostop: 'Single machines do not stop by themselves yet; leave it out and use: svc down.',
  job_recovery: 'Jobs are not recovered yet; leave it out.',
};

/** Only tools write these fields, and nothing depends on them. */
const harmless = new Set(['_metadata']);

function otherFeatures({ otherFields, resources }: Task): readonly RequestedFeature[] {
  const inResources = new Set(resources.choices.flatMap((choice) => choice.otherFields));
  const fields = [
    ...otherFields.filter((name) => !harmless.has(name)).map((name) => ({ name, field: name })),
    ...[...inResources].map((name) => ({ name, field: `resources.${name}` })),
  ];
  return fields.map(({ name, field }) => requestedFeature(name, field, true, otherSentences[name] ?? 'It is not there yet; leave it out.'));
}
