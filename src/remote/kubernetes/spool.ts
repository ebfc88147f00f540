import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { randomHex } from '../../shared/random-hex.ts';
import type { SessionRequest, SizedInput } from '../session/session-machine.ts';

/** An input whose length is known. */
export interface KnownInput {
  readonly input: Buffer | SizedInput | 'detached';
  /** Gives back what it holds. */
  readonly close: () => Promise<void>;
}

/**
 * Writes down a stream of unknown length. Before Kubernetes 1.30 nobody can close a command's input, so that the command has to be told beforehand
 * how much comes; and a stream that fails half-way then has not begun yet.
 */
export async function spooled(input: SessionRequest['input'], dir: string): Promise<KnownInput> {
  if (!(input instanceof Readable)) return { input, close: () => Promise.resolve() };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, randomHex(12));
  const file = await open(path, 'wx+', 0o600);
  try {
    // Nobody else needs its name, and so nothing stays when this process is killed.
    await rm(path);
    let bytes = 0;
    for await (const chunk of input as AsyncIterable<Buffer>) {
      await file.writeFile(chunk);
      bytes += chunk.length;
    }
    if (bytes === 0) {
      await file.close();
      return { input: Buffer.alloc(0), close: () => Promise.resolve() };
    }
    const stream = file.createReadStream({ start: 0, autoClose: false });
    return {
      input: { stream, bytes },
      close: async () => {
        stream.destroy();
        await file.close();
      },
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}
