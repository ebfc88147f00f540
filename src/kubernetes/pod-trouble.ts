import type { ContainerStatus, Pod } from './pod.ts';

/** Why a pod does not run, from its status. */
export interface PodTrouble {
  /**
   * `no-room`: no node accepts the pod, or none was tried yet. `image`: the pull fails and is retried. `crash`: a
   * container failed, or fails repeatedly. `setup`: the pod's description is invalid; waiting does not help. `other`:
   * may pass.
   */
  readonly kind: 'no-room' | 'image' | 'crash' | 'setup' | 'other';
  /** Kubernetes' reason, such as `Unschedulable`. */
  readonly reason: string;
  readonly message: string | undefined;
  /** Undefined: the problem concerns the whole pod. */
  readonly container: ContainerStatus | undefined;
  readonly image: string | undefined;
}

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

/** Finds a pod's problem; undefined when it has none, or none is known yet. */
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

/** Describes a problem in a few words, without a full stop. `said`: more detail. */
export function troubleText({ kind, reason, message, image }: PodTrouble, said = message): string {
  if (kind === 'image') {
    const cause = pullCause(said, image);
    return `The image${image === undefined ? '' : ` ${image}`} cannot be pulled: ${cause ?? reason}`;
  }
  const text = said?.trim().replaceAll(/\s+/g, ' ') ?? '';
  return text === '' ? reason : `${reason}: ${text}`;
}

/** Causes that say more than the text after them, or than the last part alone. */
const specificCauses = [
  /pull access denied/i,
  /no match for platform in manifest/i,
  /toomanyrequests/i,
  /authentication required/i,
  /requested access to the resource is denied/i,
];

/** Parts without a cause: the failed step, the requested address, and introductions of the next part. */
const needless = /^(?:https?:\/\/\S*|rpc error|server message|Error|ErrImagePull|code = \w+|Back-off pulling image .*)$/i;

const preface = /^(?:code = \w+ desc = |lookup \S+(?: on \S+)? ?)/;

/** The innermost cause of a failed pull. Undefined when the message reports only the failure. */
export function pullCause(said: string | undefined, image: string | undefined): string | undefined {
  const parts = (said ?? '')
    .replaceAll(/\s*\n\s*/g, ': ')
    .replaceAll(/\s+/g, ' ')
    .split(/: (?!\/\/)/)
    .map((part) => part.trim().replace(preface, '').replace(/[.]$/, ''))
    .filter((part) => part !== '' && part !== image && !needless.test(part) && !isAboutImage(part));
  return parts.find((part) => specificCauses.some((pattern) => pattern.test(part))) ?? parts.at(-1);
}

/** Whether a part only repeats the image's name: `Failed to pull image "a:1"`, `docker.io/library/a:1`. */
function isAboutImage(part: string): boolean {
  return /^failed to \w+(?: and \w+)?(?: \w+)* "[^"]*"$/i.test(part) || /^[\w.-]+(?::\d+)?\/[\w./-]+(?::[\w.-]+)?(?:@sha256)?$/.test(part);
}

/** Whether the registry answered, so a retry would fail too. Otherwise a later pull or another node may succeed. */
export function isDefiniteAnswer(said: string | undefined): boolean {
  return definite.test(said ?? '');
}

const definite =
  /not found|manifest unknown|unauthorized|authentication required|denied|does not exist|forbidden|\b40[134]\b|invalid reference|no match for platform/i;
