import { pullCause } from './image-pull.ts';
import type { ContainerStatus, Pod } from './pod.ts';

/** Why a pod does not run, as its own status says it. */
export interface PodTrouble {
  /**
   * `no-room`: no node takes it, or none is asked yet; `image`: it is not fetched, and tried again; `crash`: a container ended in a bad way, or does so again and
   * again; `setup`: its description does not do, whatever is waited for; `other`: anything else, which may pass.
   */
  readonly kind: 'no-room' | 'image' | 'crash' | 'setup' | 'other';
  /** In the cluster's word, such as `Unschedulable`. */
  readonly reason: string;
  readonly message: string | undefined;
  /** Undefined where it is about the whole pod. */
  readonly container: ContainerStatus | undefined;
  /** Of the container. */
  readonly image: string | undefined;
}

/** A container that is coming up waits for these. */
const harmless = new Set(['ContainerCreating', 'PodInitializing']);

const kindOfReason: Readonly<Record<string, PodTrouble['kind']>> = {
  ErrImagePull: 'image',
  ImagePullBackOff: 'image',
  RegistryUnavailable: 'image',
  CrashLoopBackOff: 'crash',
  InvalidImageName: 'setup',
  ErrImageNeverPull: 'setup',
  ImageInspectError: 'setup',
  CreateContainerConfigError: 'setup',
};

/** What keeps a pod from running; undefined when nothing does, or nothing is known to be wrong yet. */
export function podTrouble({ spec, status = {} }: Pick<Pod, 'spec' | 'status'>): PodTrouble | undefined {
  const unscheduled = status.conditions?.find((one) => one.type === 'PodScheduled' && one.status === 'False');
  if (unscheduled !== undefined) {
    const { reason = 'Unschedulable', message } = unscheduled;
    return { kind: 'no-room', reason, message, container: undefined, image: undefined };
  }
  const described = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  for (const container of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]) {
    const { waiting, terminated } = container.state ?? {};
    const image = described.find(({ name }) => name === container.name)?.image;
    if (waiting?.reason !== undefined && !harmless.has(waiting.reason)) {
      const { reason, message } = waiting;
      return { kind: kindOfReason[reason] ?? 'other', reason, message, container, image };
    }
    if ((terminated?.exitCode ?? 0) === 0) continue;
    const { reason = 'Error', exitCode, message } = terminated ?? {};
    return { kind: 'crash', reason: `${reason} (exit code ${exitCode})`, message, container, image };
  }
  return undefined;
}

/** A trouble in a few words, without a full stop. `said` is what is known of it besides. */
export function troubleText({ kind, reason, message, image }: PodTrouble, said = message): string {
  if (kind === 'image') {
    const cause = pullCause(said, image);
    return `The image${image === undefined ? '' : ` ${image}`} cannot be pulled: ${cause ?? reason}`;
  }
  const text = said?.trim().replaceAll(/\s+/g, ' ') ?? '';
  return text === '' ? reason : `${reason}: ${text}`;
}
