import type { DeleteVolumeRequest, DescribeVolumesRequest, DescribeVolumesResult, Volume } from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import { filtered, type FilterFields } from './filters.ts';
import { page } from './paging.ts';
import type { VolumeRecord } from './records.ts';
import type { Ec2Region } from './region.ts';
import { shownTags } from './tagging.ts';

const fields: FilterFields<VolumeRecord> = {
  'volume-id': (one) => one.id,
  status: (one) => (one.attachment === undefined ? 'available' : 'in-use'),
  'volume-type': (one) => one.type,
  size: (one) => String(one.sizeGb),
  'availability-zone': (one) => one.zone,
  'attachment.instance-id': (one) => one.attachment?.instanceId,
  'attachment.device': (one) => one.attachment?.device,
  'attachment.delete-on-termination': (one) => (one.attachment === undefined ? undefined : String(one.attachment.deleteOnTermination)),
};

function show(volume: VolumeRecord, now: number): Volume {
  const { attachment } = volume;
  return {
    VolumeId: volume.id,
    Size: volume.sizeGb,
    VolumeType: volume.type,
    ...(volume.iops === undefined ? {} : { Iops: volume.iops }),
    ...(volume.throughput === undefined ? {} : { Throughput: volume.throughput }),
    ...(volume.snapshotId === undefined ? {} : { SnapshotId: volume.snapshotId }),
    AvailabilityZone: volume.zone,
    State: attachment === undefined ? 'available' : 'in-use',
    CreateTime: new Date(volume.createdAt),
    Encrypted: volume.encrypted,
    Attachments:
      attachment === undefined
        ? []
        : [
            {
              InstanceId: attachment.instanceId,
              VolumeId: volume.id,
              Device: attachment.device,
              State: 'attached',
              DeleteOnTermination: attachment.deleteOnTermination,
              AttachTime: new Date(volume.createdAt),
            },
          ],
    Tags: shownTags(volume, now),
  };
}

function volumeById(ec2: Ec2, region: Ec2Region, id: string): VolumeRecord {
  const volume = region.volumes.get(id);
  if (volume !== undefined && ec2.isVisible(volume)) return volume;
  throw new ApiError('InvalidVolume.NotFound', `The volume '${id}' does not exist.`, 400);
}

/** Disks by id or filter. */
export function describeVolumes(ec2: Ec2, input: DescribeVolumesRequest, { region: name }: Caller): DescribeVolumesResult {
  const region = ec2.region(name);
  const visible = [...region.volumes.values()].filter((volume) => ec2.isVisible(volume));
  const chosen = input.VolumeIds?.map((id) => volumeById(ec2, region, id)) ?? visible;
  const { items, ...rest } = page(
    filtered(chosen, input.Filters, fields, ec2.now),
    input,
    { least: 5, most: 500 },
    ec2.emulation.conduct.pageLimit,
  );
  return { Volumes: items.map((volume) => show(volume, ec2.now)), ...rest };
}

/** Refused while a machine uses the disk. */
export function deleteVolume(ec2: Ec2, input: DeleteVolumeRequest, { region: name }: Caller): object {
  const region = ec2.region(name);
  const volume = volumeById(ec2, region, input.VolumeId ?? '');
  if (volume.attachment !== undefined) {
    throw new ApiError('VolumeInUse', `Volume ${volume.id} is currently attached to ${volume.attachment.instanceId}`, 400);
  }
  region.volumes.delete(volume.id);
  return {};
}
