import type { CreateTagsRequest, DeleteTagsRequest, Tag, TagSpecification } from '@aws-sdk/client-ec2';
import { ApiError } from '../wire/api-error.ts';
import type { Caller } from '../core/action.ts';
import type { Ec2 } from './ec2.ts';
import { visibleTags } from './filters.ts';
import type { Ec2Region } from './region.ts';
import type { Resource, TagRecord } from './records.ts';

const mostTags = 50;

/** Returns the tags for resources of a kind, from a request that creates them. */
export function tagsFor(ec2: Ec2, kind: string, specifications: readonly TagSpecification[] | undefined): Map<string, TagRecord> {
  const visibleAt = ec2.visibleAt('tag');
  const tags = (specifications ?? []).filter(({ ResourceType }) => ResourceType === kind).flatMap(({ Tags }) => Tags ?? []);
  return checkedTags(tags, visibleAt);
}

/** Refuses a request that would tag a resource it does not create. */
export function checkTagKinds(specifications: readonly TagSpecification[] | undefined, kinds: readonly string[]): void {
  for (const { ResourceType: kind = '' } of specifications ?? []) {
    if (!kinds.includes(kind))
      throw new ApiError('InvalidParameterValue', `'${kind}' is not a valid taggable resource type for this operation.`, 400);
  }
}

function checkedTags(tags: readonly Tag[], visibleAt: number): Map<string, TagRecord> {
  const records = new Map<string, TagRecord>();
  for (const { Key: key = '', Value: value = '' } of tags) {
    if (key === '' || key.length > 128)
      throw new ApiError('InvalidParameterValue', `Tag key exceeds the maximum length of 128 characters or is empty.`, 400);
    if (value.length > 256) throw new ApiError('InvalidParameterValue', `Tag value exceeds the maximum length of 256 characters.`, 400);
    if (key.toLowerCase().startsWith('aws:'))
      throw new ApiError('InvalidParameterValue', "Tag keys starting with 'aws:' are reserved for internal use", 400);
    if (records.has(key)) throw new ApiError('InvalidParameterValue', `Duplicate tag key '${key}' specified.`, 400);
    records.set(key, { value, visibleAt });
  }
  if (records.size > mostTags) throw new ApiError('TagLimitExceeded', `More than ${mostTags} tags specified`, 400);
  return records;
}

/** Tags as replies show them. */
export function shownTags(resource: Resource, now: number): Tag[] {
  return [...visibleTags(resource, now)].map(([Key, Value]) => ({ Key, Value }));
}

function everything(region: Ec2Region): readonly Resource[] {
  const rules = [...region.groups.values()].flatMap((group) => [...group.rules.values()]);
  const kept = [region.instances, region.volumes, region.groups, region.keys, region.spotRequests, region.vpcs, region.subnets];
  return [...kept.flatMap((records) => [...records.values()]), ...rules];
}

const notFound: Readonly<Record<string, string>> = {
  i: 'InvalidInstanceID.NotFound',
  vol: 'InvalidVolume.NotFound',
  sg: 'InvalidGroup.NotFound',
  key: 'InvalidKeyPair.NotFound',
  sir: 'InvalidSpotInstanceRequestID.NotFound',
};

function named(ec2: Ec2, region: Ec2Region, ids: readonly string[]): readonly Resource[] {
  const known = new Map(everything(region).map((resource) => [resource.id, resource]));
  return ids.map((id) => {
    const resource = known.get(id);
    if (resource !== undefined && ec2.isVisible(resource)) return resource;
    throw new ApiError(notFound[id.split('-')[0] ?? ''] ?? 'InvalidID', `The ID '${id}' does not exist`, 400);
  });
}

/** Adds tags or replaces their values: on all resources or on none. */
export function createTags(ec2: Ec2, { Resources, Tags }: CreateTagsRequest, { region }: Caller): object {
  const resources = named(ec2, ec2.region(region), Resources ?? []);
  const tags = checkedTags(Tags ?? [], ec2.visibleAt('tag'));
  for (const resource of resources) for (const [key, tag] of tags) resource.tags.set(key, tag);
  return {};
}

/** Removes tags; a tag with a value only when the value matches. */
export function deleteTags(ec2: Ec2, { Resources, Tags }: DeleteTagsRequest, { region }: Caller): object {
  for (const resource of named(ec2, ec2.region(region), Resources ?? [])) {
    if (Tags === undefined) resource.tags.clear();
    for (const { Key: key = '', Value: value } of Tags ?? []) {
      if (value === undefined || resource.tags.get(key)?.value === value) resource.tags.delete(key);
    }
  }
  return {};
}
