import { pullCause } from './image-pull.ts';
import type { ContainerStatus, Pod } from './pod.ts';

/** Why a pod does not run, according to its own status. */
export interface PodTrouble {
  /**
   * `no-room`: no node accepts the pod, or the scheduler has tried none yet. `image`: the image pull fails and is
   * retried. `crash`: a container failed, or fails repeatedly. `setup`: the pod's description is invalid, and waiting
   * does not help. `other`: anything else, may pass.
   */
  readonly kind: 'no-room' | 'image' | 'crash' | 'setup' | 'other';
  /** Kubernetes' reason, such as `Unschedulable`. */
  readonly reason: string;
  readonly message: string | undefined;
  /** Undefined when the problem concerns the whole pod. */
  readonly container: ContainerStatus | undefined;
  /** Of the container. */
  readonly image: string | undefined;
}

/** Waiting reasons of a container that is starting normally. */
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

/** The problem that keeps a pod from running; undefined when there is no problem, or none is known yet. */
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

/** A problem in a few words, without a full stop. `said` is additional detail. */
export function troubleText({ kind, reason, message, image }: PodTrouble, said = message): string {
  if (kind === 'image') {
    const cause = pullCause(said, image);
    return `The image${image === undefined ? '' : ` ${image}`} cannot be pulled: ${cause ?? reason}`;
  }
  const text = said?.trim().replaceAll(/\s+/g, ' ') ?? '';
  return text === '' ? reason : `${reason}: ${text}`;
}
