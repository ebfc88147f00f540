/** A signer: an access key, long-lived or of a session. */
export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Present for a session's key only; each request must carry it. */
  readonly sessionToken?: string;
  /** When the session ends, ms since the epoch on the emulator's clock. */
  readonly expiresAt?: number;
  readonly account: string;
  readonly arn: string;
  readonly userId: string;
}

/** The existing access keys. */
export class KeyRing {
  readonly #keys = new Map<string, AccessKey>();

  add(key: AccessKey): AccessKey {
    this.#keys.set(key.accessKeyId, key);
    return key;
  }

  find(accessKeyId: string): AccessKey | undefined {
    return this.#keys.get(accessKeyId);
  }

  /** As when a person deletes the key in the console. */
  remove(accessKeyId: string): void {
    this.#keys.delete(accessKeyId);
  }
}
