import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** The SHA-256 of a file's content, in hex. */
export async function sha256OfFile(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1_048_576, ...(signal === undefined ? {} : { signal }) })) {
    hash.update(chunk);
  }
  return hash.digest('hex');
}
