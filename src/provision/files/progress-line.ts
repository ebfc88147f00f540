import type { PublishProgress } from './publish.ts';

const count = (value: number): string => value.toLocaleString('en-US');

/** How far publishing is, for people: `310 of 20,000 files, 4.2 of 81.0 MB`. */
export function progressLine({ files, totalFiles, bytes, totalBytes, sentBytes }: PublishProgress): string {
  const how = `${count(files)} of ${count(totalFiles)} files, ${megabytes(bytes)} of ${megabytes(totalBytes)} MB`;
  return files === totalFiles ? `${how}; ${megabytes(sentBytes)} MB were sent` : how;
}

/** With one decimal, in MB of 1,000,000 bytes. */
export function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}
