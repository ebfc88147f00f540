import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import { hasErrno } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/fingerprint.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { PortableFile } from '../provider.ts';
import { sshKeyFromSeed, type SshKey } from './ssh-key.ts';

/** Who this SVC_HOME is to AWS. */
export interface HomeIdentity {
  /** The value of the tag `svc.home`. */
  readonly id: string;
  readonly key: SshKey;
  /** The private key's file. */
  readonly keyFile: string;
  /** The host key that the machine of an idempotency key gets: known before the machine is, and to every process of the home. */
  hostKey(machineKey: string): SshKey;
}

/** Of a home's secret, below the home. */
const secretPath = 'ssh/aws/secret';

/** What a home keeps about AWS: its secret, its SSH key, and where it ever asked for something. */
export class HomeFiles {
  readonly #dir: string;
  #identity: HomeIdentity | undefined;

  constructor(paths: Pick<HomePaths, 'sshDir'>) {
    this.#dir = join(paths.sshDir, 'aws');
  }

  /** Undefined while this home never asked AWS for anything: then nothing there is its own. */
  existing(): HomeIdentity | undefined {
    if (this.#identity !== undefined) return this.#identity;
    const path = join(this.#dir, 'secret');
    if (!existsSync(path)) return undefined;
    const secret = readSecret(path);
    const identity = identityOf(secret, join(this.#dir, 'id_ed25519'));
    const { key, keyFile } = identity;
    // A file that a user changed or lost is as it was: everything comes from the secret.
    if (!existsSync(keyFile) || readFileSync(keyFile, 'utf8') !== key.privateFile) writeFileAtomic(keyFile, key.privateFile);
    this.#identity = identity;
    return identity;
  }

  /** Makes the identity when there is none. Of several processes that do so at once one wins, and all get the same. */
  identity(): HomeIdentity {
    const existing = this.existing();
    if (existing !== undefined) return existing;
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const temporary = join(this.#dir, `secret.${randomHex(8)}.tmp`);
    try {
      writeFileSync(temporary, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flush: true });
      linkSync(temporary, join(this.#dir, 'secret'));
    } catch (error) {
      if (!hasErrno(error, 'EEXIST')) throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
    return this.identity();
  }

  /**
   * The secret for the home of a controller that this one brings up, and a record that it was given: by it this home knows what that one makes, even
   * when its machine is lost, while that one knows nothing of this.
   */
  secretForController(controllerKey: string): PortableFile {
    this.identity();
    this.#note('controllers', controllerKey);
    return { path: secretPath, content: `${this.#controllerSecret(controllerKey).toString('hex')}\n`, once: true };
  }

  /** Who a controller is to AWS that was given its secret by this home; undefined for any other. */
  controllerIdentity(controllerKey: string): Pick<HomeIdentity, 'id'> | undefined {
    if (!this.#noted('controllers').includes(controllerKey)) return undefined;
    return identityOf(this.#controllerSecret(controllerKey), '');
  }

  /** Nothing of the controller's is left. */
  forgetController(controllerKey: string): void {
    this.#forget('controllers', controllerKey);
  }

  /** Records, before anything is asked for there, that the home may have something in a region. */
  noteRegion(region: string): void {
    this.#note('regions', region);
  }

  /** Every region where the home may have something. */
  regions(): readonly string[] {
    return this.#noted('regions');
  }

  /** Records that a role is about to be made for an owner. */
  noteRole(owner: string): void {
    this.#note('roles', owner);
  }

  hasRole(owner: string): boolean {
    return this.#noted('roles').includes(owner);
  }

  /** The owner's role is gone. */
  forgetRole(owner: string): void {
    this.#forget('roles', owner);
  }

  #controllerSecret(controllerKey: string): Buffer {
    return derive(readSecret(join(this.#dir, 'secret')), `controller ${controllerKey}`);
  }

  #forget(kind: string, name: string): void {
    rmSync(join(this.#dir, kind, encodeURIComponent(name)), { force: true });
  }

  #note(kind: string, name: string): void {
    if (!this.#noted(kind).includes(name)) writeFileAtomic(join(this.#dir, kind, encodeURIComponent(name)), '');
  }

  #noted(kind: string): readonly string[] {
    const dir = join(this.#dir, kind);
    return existsSync(dir)
      ? readdirSync(dir)
          .filter((name) => !name.endsWith('.tmp'))
          .map(decodeURIComponent)
      : [];
  }
}

function readSecret(path: string): Buffer {
  return Buffer.from(readFileSync(path, 'utf8').trim(), 'hex');
}

function identityOf(secret: Buffer, keyFile: string): HomeIdentity {
  const key = sshKeyFromSeed(derive(secret, 'client-key'), 'svc');
  return {
    id: fingerprint(key.publicLine),
    key,
    keyFile,
    hostKey: (machineKey) => sshKeyFromSeed(derive(secret, `host-key ${machineKey}`), 'svc-host'),
  };
}

/** Independent secrets for each use of one (RFC 5869 in its short form: one block, the secret itself being uniform). */
function derive(secret: Buffer, use: string): Buffer {
  return createHmac('sha256', secret).update(use).digest();
}
