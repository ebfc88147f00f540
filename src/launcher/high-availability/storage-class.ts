import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfAll, pathOfOne } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import { readIfAllowed } from './cluster-facts.ts';
import type { HighAvailabilityDesign } from './design.ts';
import { haNames, storageClassSetting } from './names.ts';
import type { KubernetesDeps } from './site.ts';

interface VolumeObject extends KubeObject {
  readonly spec?: {
    readonly storageClassName?: string;
    readonly claimRef?: { readonly name?: string; readonly namespace?: string };
  };
}

/** The beta name still works in all versions. */
const defaultMarks = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class'];

/**
 * Throws SVC_CONTROLLER_START when no storage can provide the volume of a new controller with SQLite. Without this
 * check its pod would wait for ever, and a claim keeps its class. A user who may not read classes and volumes passes.
 */
export async function refuseWithoutStorage(design: HighAvailabilityDesign, deps: Pick<KubernetesDeps, 'api' | 'signal'>): Promise<void> {
  const { context, namespace, database, storageClass } = design;
  if (database !== 'sqlite') return;
  const [claim, classes, volumes] = await Promise.all([
    readIfAllowed(() => deps.api.get(pathOfOne('PersistentVolumeClaim', namespace, haNames.volume), deps)),
    listIfAllowed<KubeObject>(deps.api, pathOfAll('StorageClass'), deps.signal),
    listIfAllowed<VolumeObject>(deps.api, pathOfAll('PersistentVolume'), deps.signal),
  ]);
  if (claim !== undefined || classes === undefined || volumes === undefined) return;
  const hasClass = classes.some(({ metadata: { name, annotations = {} } }) =>
    storageClass === undefined ? defaultMarks.some((mark) => annotations[mark] === 'true') : name === storageClass,
  );
  // An administrator may have made a volume by hand.
  if (hasClass || volumes.some((volume) => isUsable(volume, design))) return;
  const names = classes.map(({ metadata }) => metadata.name);
  const missing = storageClass === undefined ? 'default StorageClass' : `StorageClass ${storageClass} (${storageClassSetting})`;
  throw new SvcError('SVC_CONTROLLER_START', `The Kubernetes cluster ${context} has no ${missing} for the volume of the controller.`, {
    hint:
      names.length === 0
        ? 'It has no StorageClass at all: let its administrator make one, or keep the state in PostgreSQL (serve.controller.database).'
        : `Set ${storageClassSetting} in config.yaml to one of: ${names.join(', ')}. Or keep the state in PostgreSQL (serve.controller.database).`,
  });
}

function isUsable({ spec = {} }: VolumeObject, { namespace, storageClass = '' }: HighAvailabilityDesign): boolean {
  const { claimRef, storageClassName = '' } = spec;
  const isForUs = claimRef === undefined || (claimRef.name === haNames.volume && claimRef.namespace === namespace);
  return isForUs && storageClassName === storageClass;
}

async function listIfAllowed<T extends KubeObject>(api: KubeApi, path: string, signal: AbortSignal): Promise<readonly T[] | undefined> {
  return (await readIfAllowed(() => api.list<T>(path, { signal })))?.items;
}
