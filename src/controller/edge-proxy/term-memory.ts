import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { hasErrno } from '../../shared/errors.ts';

/**
 * The newest controller term seen, kept across restarts. Refuses older terms and cuts their connections: a controller
 * that was paused must not push outdated state.
 */
export class TermMemory {
  readonly #file: string;
  readonly #connected = new Map<Socket, number>();
  #newest: number;

  constructor(file: string) {
    this.#file = file;
    this.#newest = readTerm(file);
  }

  get newest(): number {
    return this.#newest;
  }

  /** Whether the peer of a connection may give commands. */
  accept(term: number, socket: Socket): boolean {
    if (term < this.#newest) return false;
    if (term > this.#newest) {
      this.#newest = term;
      writeFileAtomic(this.#file, String(term));
      for (const [one, itsTerm] of this.#connected) if (itsTerm < term) one.destroy();
    }
    this.#connected.set(socket, term);
    socket.once('close', () => this.#connected.delete(socket));
    return true;
  }
}

function readTerm(file: string): number {
  try {
    const term = Number(readFileSync(file, 'utf8'));
    return Number.isSafeInteger(term) ? term : 0;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}
