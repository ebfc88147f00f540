import { z } from 'zod';
import { anyMap, field, required, section, someText, word } from './kit.ts';

/** Bucket kinds by their word in `store`, with the scheme of their addresses. */
export const bucketSchemes = {
  s3: 's3',
  gcs: 'gs',
  azure: 'az',
  r2: 'r2',
  ibm: 'cos',
  oci: 'oci',
  nebius: 'nebius',
  coreweave: 'cw',
} as const;
const stores = ['s3', 'gcs', 'azure', 'r2', 'ibm', 'oci', 'nebius', 'coreweave'] as const satisfies readonly (keyof typeof bucketSchemes)[];

const mountObject = section({
  name: field(someText, 'Name of the bucket.'),
  source: field(z.union([someText, z.array(someText).min(1)]), 'A local path, paths, or the address of a bucket.'),
  store: field(word(stores), 'Kind of bucket.'),
  persistent: field(z.boolean(), 'Whether the bucket outlives the task.', true),
  mode: field(word(['mount', 'copy', 'mount_cached']), 'How files get there. Case does not count.', 'mount'),
  mount_options: field(someText, 'Options of the mount.'),
  type: field(someText, 'Kind of mount.'),
  config: field(anyMap, 'Details of the mount.'),
});

/** The section `file_mounts`: target paths on the machine with their sources. */
export const fileMountsSection = z.record(z.string().min(1, 'is no path on the machine'), z.union([someText, mountObject]));

/** The section `workdir`. */
export const workdirSection = z.union([
  someText,
  section({
    url: required(someText, 'Address of a git repository.'),
    ref: field(someText, 'Branch, tag or commit.'),
  }),
]);

export type MountFields = z.output<typeof mountObject>;
