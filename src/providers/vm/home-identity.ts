import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { hasErrno } from '../../shared/errors.ts';
import { fingerprint, randomHex } from '../../shared/hex.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { PortableFile } from '../provider.ts';
import { cloudDir, namedIntents, type NamedIntents } from '../intent-log.ts';
import { sshKeyFromSeed, type SshKey } from './ssh-key.ts';

/** The identity of this SVC_HOME at a cloud. */
export interface HomeIdentity {
  /** The value of the tag `svc.home`. */
  readonly id: string;
  readonly key: SshKey;
  readonly keyFile: string;
  /** Every process of the home knows a machine's host key before the machine exists. */
  hostKey(machineKey: string): SshKey;
}

/** A home's identity at one cloud. All of it derives from one secret, `ssh/CLOUD/secret` below SVC_HOME. */
export class HomeIdentities {
  readonly #cloud: string;
  readonly #dir: string;
  readonly #controllers: NamedIntents;
  #identity: HomeIdentity | undefined;

  constructor(paths: Pick<HomePaths, 'sshDir'>, cloud: string) {
    this.#cloud = cloud;
    this.#dir = cloudDir(paths, cloud);
    this.#controllers = namedIntents(paths, cloud, 'controllers');
  }

  /** Undefined while this home has never sent a request to the cloud: then it owns nothing there. */
  existing(): HomeIdentity | undefined {
    if (this.#identity !== undefined) return this.#identity;
    if (!existsSync(this.#secretFile)) return undefined;
    const identity = identityOf(readSecret(this.#secretFile), join(this.#dir, 'id_ed25519'));
    const { key, keyFile } = identity;
    // A user may have changed or lost the key file.
    if (!existsSync(keyFile) || readFileSync(keyFile, 'utf8') !== key.privateFile) writeFileAtomic(keyFile, key.privateFile);
    this.#identity = identity;
    return identity;
  }

  /** Creates the identity if there is none. Concurrent processes all get the same one. */
  identity(): HomeIdentity {
    const existing = this.existing();
    if (existing !== undefined) return existing;
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const temporary = join(this.#dir, `secret.${randomHex(8)}.tmp`);
    try {
      writeFileSync(temporary, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flush: true });
      linkSync(temporary, this.#secretFile);
    } catch (error) {
      if (!hasErrno(error, 'EEXIST')) throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
    return this.identity();
  }

  /**
   * With this secret, this home finds a controller's machines even after the controller is lost. The controller learns
   * nothing about this home.
   */
  secretForController(controllerKey: string): PortableFile {
    this.identity();
    this.#controllers.record(controllerKey, true);
    const content = `${this.#controllerSecret(controllerKey).toString('hex')}\n`;
    return { path: `ssh/${this.#cloud}/secret`, content, once: true };
  }

  /** Undefined for a controller that got no secret from this home. */
  controllerIdentity(controllerKey: string): Pick<HomeIdentity, 'id'> | undefined {
    return this.#controllers.get(controllerKey) === undefined ? undefined : identityOf(this.#controllerSecret(controllerKey), '');
  }

  /** The controller has no resources left. */
  forgetController(controllerKey: string): void {
    this.#controllers.forget(controllerKey);
  }

  get #secretFile(): string {
    return join(this.#dir, 'secret');
  }

  #controllerSecret(controllerKey: string): Buffer {
    return derive(readSecret(this.#secretFile), `controller ${controllerKey}`);
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

/** RFC 5869 in its short form: one block, because the secret is uniform. */
function derive(secret: Buffer, use: string): Buffer {
  return createHmac('sha256', secret).update(use).digest();
}
