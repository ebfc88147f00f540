import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { BalancerReplica } from '../../domain/balancer-link.ts';
import { hasErrno } from '../../shared/errors.ts';
import { readReplicas } from './command.ts';

/** The last good replica set on disk, from which the process serves at once after a restart. */
export class LastReplicas {
  readonly #path: string;
  #written = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** `none` when there is no file yet; undefined when it cannot be understood. */
  load(): readonly BalancerReplica[] | 'none' | undefined {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return 'none';
      return undefined;
    }
    try {
      const replicas = readReplicas(JSON.parse(text));
      if (replicas !== undefined) this.#written = text;
      return replicas;
    } catch {
      // Cut short, as only the loss of the whole machine can leave it: its replicas are gone as well.
      return undefined;
    }
  }

  /**
   * Replaces the file in one step when the set is another. It does not wait for the disk (fsync): a killed process loses nothing by that, and
   * waiting would hold up every stream that passes through here.
   */
  save(replicas: readonly BalancerReplica[]): void {
    const text = JSON.stringify(replicas);
    if (text === this.#written) return;
    const temporary = `${this.#path}.${process.pid}.tmp`;
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, this.#path);
    this.#written = text;
  }
}
