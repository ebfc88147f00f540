import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { BalancerReplica } from '../../domain/balancer-link.ts';
import { hasErrno } from '../../shared/errors.ts';
import { readReplicas } from './read-command.ts';

/** The last valid replica set, on disk. The balancer serves from it at once after a restart. */
export class ReplicaSetFile {
  readonly #path: string;
  #written = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** `none` when there is no file yet; undefined when the file cannot be read or parsed. */
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
      // `save` replaces the file in one step, so only a crash of the machine can truncate it.
      return undefined;
    }
  }

  /**
   * Replaces the file in one step. No fsync: it would delay every stream, and the kernel has a killed process's data.
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
