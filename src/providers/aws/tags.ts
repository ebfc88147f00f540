import { fingerprint } from '../../shared/fingerprint.ts';
import type { MachineSpec } from '../provider.ts';

/**
 * Tags of the provider itself, beside those of its callers, which all begin with `svc-`. The policy in docs/clouds/aws.md lets things be removed
 * that carry `svc.home`.
 */
export const ownTags = {
  /** Which SVC_HOME made it: nobody touches what another home made. */
  home: 'svc.home',
  /** Whose it is, for `release`. */
  owner: 'svc.owner',
  /** The idempotency key of a machine. */
  key: 'svc.key',
  /** Whom to log in as. */
  user: 'svc.user',
} as const;

/** What belongs together and is released together: a service, or a single machine where there is none. */
export function ownerOf(spec: Pick<MachineSpec, 'tags'>, key: string): string {
  return spec.tags['svc-service-key'] ?? spec.tags['svc-key'] ?? key;
}

/** A tag as AWS's requests have it. */
export interface Tag {
  readonly Key: string;
  readonly Value: string;
}

const asList = (tags: Readonly<Record<string, string>>): Tag[] =>
  Object.entries(tags)
    .map(([Key, Value]) => ({ Key, Value }))
    .toSorted((a, b) => (a.Key < b.Key ? -1 : 1));

/** Tags of what is shared by an owner's machines. */
export function sharedTags(home: string, owner: string | undefined): Tag[] {
  return asList({ [ownTags.home]: home, ...(owner === undefined ? {} : { [ownTags.owner]: owner }) });
}

/** Tags of a machine and its parts. A label never replaces what the machine is found by. Always in the same order: AWS compares requests. */
export function machineTags(spec: MachineSpec, key: string, home: string, user: string): Tag[] {
  const name = [spec.tags['svc-service'] ?? spec.tags['svc-cluster'] ?? 'svc', spec.tags['svc-replica']].filter(Boolean).join('-');
  return asList({
    Name: name,
    ...spec.labels,
    ...spec.tags,
    [ownTags.home]: home,
    [ownTags.owner]: ownerOf(spec, key),
    [ownTags.key]: key,
    [ownTags.user]: user,
  });
}

/** The callers' tags among those of a machine. */
export function callersTags(
  tags: readonly { readonly Key?: string | undefined; readonly Value?: string | undefined }[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    tags.flatMap(({ Key, Value }) => (Key !== undefined && Key.startsWith('svc-') ? [[Key, Value ?? ''] as const] : [])),
  );
}

/**
 * The token by which AWS knows a repeated request: of the machine's key and of what is asked for, as one token must never come with another
 * request. `generation` counts the machines that this very request gave before and that are gone.
 */
export function clientToken(key: string, request: readonly string[], generation: number): string {
  return `svc-${fingerprint(JSON.stringify([key, ...request, generation]))}${fingerprint(JSON.stringify([generation, ...request, key]))}`;
}
