import { type Stats, closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { lstat } from 'node:fs/promises';
import { randomHex } from '../hex.ts';
import { hasErrno } from '../errors.ts';
import { parseJson } from '../json.ts';

/** Replaces a file atomically: a reader or a crash sees either the old or the new content. */
export function writeFileAtomic(path: string, content: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.${randomHex(6)}.tmp`;
  try {
    const file = openSync(temporary, 'wx', mode);
    try {
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** The pid of the process that made this temporary file for an atomic write; undefined for any other file. */
export function temporaryFileWriter(name: string): number | undefined {
  const pid = /\.(\d+)\.[\da-f]{6}\.tmp$/.exec(name)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

/** The text of a file; empty when the file does not exist or was removed. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** A JSON file's value, undefined if invalid. Undefined without a file. Throws Node's error if it cannot be read. */
export function readJsonFile(path: string): { readonly value: unknown } | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  return { value: parseJson(text) };
}

/** Stats without following links; undefined when the path does not exist. Throws Node's error when access is denied. */
export async function lstatIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}
