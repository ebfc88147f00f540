import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The verified checksum algorithms, as headers name them after `x-amz-checksum-`. */
export const checksumNames = ['crc32', 'sha1', 'sha256'] as const;
/** One of these algorithms. */
export type ChecksumName = (typeof checksumNames)[number];

/**
 * A checksum of an object, base64. A multipart object may have a checksum of its parts' checksums, with their number.
 */
export interface Checksum {
  readonly name: ChecksumName;
  readonly value: string;
  readonly type: 'FULL_OBJECT' | 'COMPOSITE';
}

/** Whether a name is that of a verified algorithm. */
export function isChecksumName(name: string): name is ChecksumName {
  return checksumNames.some((known) => known === name);
}

/** An incremental checksum. */
export interface RunningChecksum {
  readonly update: (chunk: Uint8Array) => void;
  /** Base64. */
  readonly value: () => string;
}

/** Creates a checksum. */
export function startChecksum(name: ChecksumName | 'md5'): RunningChecksum {
  if (name === 'crc32') {
    let sum = 0;
    const bytes = Buffer.alloc(4);
    return {
      update: (chunk) => {
        sum = crc32(chunk, sum);
      },
      value: () => {
        bytes.writeUInt32BE(sum);
        return bytes.toString('base64');
      },
    };
  }
  const hash = createHash(name);
  return { update: (chunk) => void hash.update(chunk), value: () => hash.digest('base64') };
}

/**
 * Returns the checksum of an object from the checksums of its parts.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 */
export function compositeChecksum(name: ChecksumName, parts: readonly string[]): Checksum {
  const sum = startChecksum(name);
  for (const part of parts) sum.update(Buffer.from(part, 'base64'));
  return { name, value: `${sum.value()}-${parts.length}`, type: 'COMPOSITE' };
}
