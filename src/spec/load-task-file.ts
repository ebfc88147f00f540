import { resolve } from 'node:path';
import type { Task } from '../domain/task.ts';
import { parseTask } from './parse-task.ts';
import { decode, readTextFile } from './read-text-file.ts';
import { maxTaskBytes, tooBig, type TaskSource } from './task-document.ts';

/** Command line overrides of a task file. */
export interface TaskOverrides {
  readonly envs?: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Relative to the working directory. */
  readonly workdir?: string | undefined;
}

/** A task file after reading: the parsed task, and the source that is sent to the controller. */
export interface LoadedTask {
  readonly task: Task;
  readonly source: TaskSource;
}

/** Reads a task file; `-` is standard input. Throws as `parseTask`, and SVC_FILE_NOT_FOUND, SVC_FILE_UNREADABLE. */
export async function loadTaskFile(path: string, overrides: TaskOverrides = {}): Promise<LoadedTask> {
  const file = path === '-' ? '-' : resolve(path);
  const text = path === '-' ? await readStandardInput() : readTextFile(file, 'The file', maxTaskBytes, tooBig);
  const source: TaskSource = {
    source: text,
    file,
    envs: overrides.envs ?? {},
    secrets: overrides.secrets ?? {},
    ...(overrides.workdir === undefined ? {} : { workdir: resolve(overrides.workdir) }),
  };
  return { task: parseTask(source), source };
}

/** Reads the stream, not the file: standard input may be a socket, which cannot be opened. */
async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxTaskBytes) throw tooBig('The text on standard input');
  }
  return decode(Buffer.concat(chunks), '-', 'Standard input');
}
