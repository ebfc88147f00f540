import {
  appendFileSync,
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { threadId } from 'node:worker_threads';
import { isoTime, systemClock } from '../clock.ts';
import { hasErrno } from '../errors.ts';

const mebibyte = 1_048_576;

const longestLog = 16 * mebibyte;

/** The size is checked after this many bytes, so that most lines need only one system call. */
const checkEveryBytes = 65_536;

const standardOutput = 1;

/**
 * Rotates a log at its limit: its newest part becomes PATH.1, and the file is emptied. It keeps its inode, because it
 * is open as processes' standard output. If several threads or processes rotate a log at once, one empties it. On a
 * full disk the older part is lost.
 */
export function rotateLog(path: string, limit = longestLog): void {
  if (sizeOf(path) < limit) return;
  try {
    const file = openSync(path, 'r+');
    try {
      const newest = newestPart(file, limit);
      if (newest === undefined) return;
      keepOlder(newest, `${path}.1`);
      if (fstatSync(file).size >= limit) ftruncateSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    // A log error must not end the process that logs. The log is rotated at a later line.
    if (!isOfFileSystem(error)) throw error;
  }
}

/** The newest part of a log; undefined when another thread or process has just rotated it. */
function newestPart(file: number, limit: number): Buffer | undefined {
  const { size } = fstatSync(file);
  if (size < limit) return undefined;
  const newest = Buffer.alloc(limit);
  return readSync(file, newest, 0, limit, size - limit) < limit ? undefined : newest;
}

function keepOlder(newest: Buffer, target: string): void {
  // The name is fixed, so a file left by a killed process is overwritten.
  const temporary = `${target}.${threadId}.tmp`;
  try {
    writeFileSync(temporary, newest, { mode: 0o600 });
    renameSync(temporary, target);
  } catch (error) {
    if (!isOfFileSystem(error)) throw error;
    for (const path of [temporary, target]) rmSync(path, { force: true });
  }
}

/** Opens the log for a new process's standard output. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  rotateLog(path);
  return openSync(path, 'a', 0o600);
}

/** Appends to a log of few lines. On a full disk the line is lost and the caller continues. */
export function appendToLog(path: string, text: string, limit: number): void {
  rotateLog(path, limit);
  try {
    appendFileSync(path, text, { mode: 0o600 });
  } catch (error) {
    if (!hasErrno(error, 'ENOSPC', 'EDQUOT')) throw error;
  }
}

interface LineWriter {
  write(line: string): void;
}

/** The log file at standard output; undefined when that is no file. A full disk loses lines, but blocks nothing. */
export function outputLog(limit = longestLog): LineWriter | undefined {
  if (!fstatSync(standardOutput).isFile()) return undefined;
  let unchecked = checkEveryBytes;
  let lost = 0;
  let isTorn = false;
  const put = (text: string): void => {
    const bytes = Buffer.from(isTorn ? `\n${text}` : text);
    for (let at = 0; at < bytes.length; isTorn = at < bytes.length) at += writeSync(standardOutput, bytes, at);
    unchecked += bytes.length;
  };
  return {
    write(line) {
      try {
        if (lost > 0)
          put(`${JSON.stringify({ level: 40, time: isoTime(systemClock.now()), msg: `${lost} lines are missing: the disk was full` })}\n`);
        lost = 0;
        put(line);
      } catch (error) {
        if (!isOfFileSystem(error)) throw error;
        lost += 1;
      }
      if (unchecked < checkEveryBytes) return;
      unchecked = 0;
      rotateLog(readlinkSync(`/proc/self/fd/${standardOutput}`), limit);
    },
  };
}

const isOfFileSystem = (error: unknown): boolean =>
  hasErrno(error, 'ENOSPC', 'EDQUOT', 'EIO', 'EFBIG', 'ENOENT', 'EACCES', 'EROFS', 'EMFILE', 'ENFILE');

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
