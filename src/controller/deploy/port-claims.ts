import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { getuid } from 'node:process';
import { nameProblem } from '../../domain/names.ts';
import type { Clock } from '../../shared/clock.ts';
import { hasErrno, messageOf } from '../../shared/errors.ts';
import { isObject } from '../../shared/json.ts';
import { homePaths, servicePaths, type HomePaths } from '../../shared/paths.ts';
import { randomHex } from '../../shared/hex.ts';

/** Shared by all homes and users of this machine. Unlike /tmp, it survives a reboot. */
const claimsDir = '/var/tmp/svc-ports';
/** As /tmp: all users may add files, and remove only their own. */
const dirMode = 0o1777;
const fileMode = 0o644;

/** Limit per other user. Claims beyond it are ignored: they would keep ports from others at no cost. */
const maxOfOtherUser = 256;
const maxBytes = 8_192;
/** Another user's claim lapses this long after its last confirmation, ms: no file may hold a port for ever. */
const foreignMs = 90 * 86_400_000;
/** How often a controller confirms its claims, ms. Cleaners of /var/tmp remove files that are 30 days old. */
const confirmEveryMs = 86_400_000;
/** A temporary file older than this was left by a process that died, ms. */
const leftoverMs = 60_000;

const claimName = /^([1-9]\d{0,4})\.(\d{1,10})$/;
/** Allows letters of any language. Refuses control and format characters: they would change how a message is shown. */
const printable = /^\/[^\p{C}\p{Zl}\p{Zp}]*$/u;

/** A port that belongs to a service of some home of this machine. */
export interface PortClaim {
  readonly port: number;
  readonly uid: number;
  readonly home: string;
  readonly service: string;
  readonly key: string;
  /** When the owner's controller last confirmed the claim, wall time in ms. */
  readonly confirmedAt: number;
  readonly path: string;
}

interface PortOwner {
  readonly name: string;
  readonly key: string;
  readonly port: number;
}

interface PortClaimsDeps {
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly dir?: string;
  readonly uid?: number;
}

/**
 * Records which port of this machine belongs to which service, over all homes and users: one file `PORT.UID` for each.
 * A file outlives its service's processes, so the port stays reserved across reboots and while the balancer or the
 * controller is down. The file's owner proves the user. A claim is valid while its home has the service's folder.
 * Another user's claim also needs a recent confirmation by its controller.
 *
 * Claims only prevent accidents: a malicious user can bind the ports anyway. A user can also keep others from writing
 * claims; `problems` then lists the unprotected ports.
 */
export class PortClaims {
  readonly #paths: HomePaths;
  readonly #clock: Clock;
  readonly #dir: string;
  readonly #uid: number;
  readonly #problems = new Map<number, string>();

  constructor({ paths, clock, dir = claimsDir, uid = getuid?.() ?? 0 }: PortClaimsDeps) {
    this.#paths = paths;
    this.#clock = clock;
    this.#dir = dir;
    this.#uid = uid;
  }

  /** Ports of this home's services whose claims could not be written or compared, with a sentence for users. */
  get problems(): ReadonlyMap<number, string> {
    return this.#problems;
  }

  /** Valid claims of other homes, by port. */
  others(): ReadonlyMap<number, PortClaim> {
    return new Map(this.#all().flatMap((claim) => (this.#isOwn(claim) || !this.#isLive(claim) ? [] : [[claim.port, claim]])));
  }

  /**
   * Claims a port for a service of this home, whose folder must exist. Returns the conflicting claim, if any. When
   * claims cannot be written on this machine, returns undefined and adds the port to `problems`.
   */
  take(owner: PortOwner): PortClaim | undefined {
    const { port } = owner;
    const conflict = this.#claim(owner);
    if (conflict !== undefined) return conflict;
    // Another user may claim the port at the same moment. Both check after writing, so at least one sees the other.
    const other = this.#all().find((claim) => claim.port === port && claim.uid !== this.#uid && this.#isLive(claim));
    if (other !== undefined) this.release(owner);
    return other;
  }

  /** Returns the conflicting claim of this user. A failed write is a problem of the machine, not of the service. */
  #claim(owner: PortOwner): PortClaim | undefined {
    const path = this.#pathOf(owner.port);
    try {
      for (let tries = 0; !this.#write(owner); tries += 1) {
        const found = this.#read(path, owner.port, this.#uid);
        if (found !== undefined && found.key !== owner.key && this.#isLive(found)) return found;
        if (found?.key === owner.key && this.#isOwn(found)) break;
        if (tries >= 3) throw new Error(`${path} is not of user ${this.#uid}, or changes all the time`);
        this.#remove(path, found?.key);
      }
      readdirSync(this.#dir);
      // Other homes read a claim by the same rules. A claim that this home cannot read protects nothing.
      if (this.#read(path, owner.port, this.#uid) === undefined)
        throw new Error(`other homes cannot read ${path}: the path of this home is not printable`);
      this.#problems.delete(owner.port);
    } catch (error) {
      const sentence = `Port ${owner.port} is not protected from services of other homes: its claim failed: ${messageOf(error)}.`;
      this.#problems.set(owner.port, `${sentence} Services of other homes can take the port while the balancer is down.`);
    }
    return undefined;
  }

  /** Releases the claim of a service of this home, if it has one. */
  release({ port, key }: Pick<PortOwner, 'port' | 'key'>): void {
    this.#problems.delete(port);
    if (this.#read(this.#pathOf(port), port, this.#uid)?.key === key) this.#remove(this.#pathOf(port), key);
  }

  /** Valid claims of this home. */
  own(): readonly PortClaim[] {
    return this.#all().filter((claim) => this.#isOwn(claim) && this.#isLive(claim));
  }

  /** Claims missing ports of this home's services and releases `gone`. Returns conflicting claims of other homes. */
  keep(services: readonly PortOwner[], gone: readonly PortClaim[]): readonly PortClaim[] {
    for (const claim of gone) this.release(claim);
    // Includes claims of this user's deleted homes.
    for (const claim of this.#all()) if (claim.uid === this.#uid && !this.#isLive(claim)) this.release(claim);
    this.#removeLeftovers();
    const own = new Map(this.own().map((claim) => [claim.port, claim]));
    const now = this.#clock.now();
    return services.flatMap((service) => {
      const known = own.get(service.port);
      if (known?.key !== service.key) return this.take(service) ?? [];
      if (now - known.confirmedAt >= confirmEveryMs) this.#confirm(service.port, now);
      return [];
    });
  }

  #isOwn({ uid, home }: PortClaim): boolean {
    return uid === this.#uid && home === this.#paths.home;
  }

  /** A service's folder exists from before its claim until the service is gone. */
  #isLive({ home, key, uid, confirmedAt }: PortClaim): boolean {
    if (uid !== this.#uid && Math.abs(this.#clock.now() - confirmedAt) >= foreignMs) return false;
    try {
      return statSync(servicePaths(homePaths(home, this.#uid), key).dir).isDirectory();
    } catch (error) {
      // Other errors mean that the folder cannot be inspected: usually the home of another user.
      return !hasErrno(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG');
    }
  }

  /** All readable claims, valid or not. */
  #all(): readonly PortClaim[] {
    const perUser = new Map<number, number>();
    return this.#names().flatMap((name) => {
      const [, port = 0, uid = 0] = (claimName.exec(name) ?? []).map(Number);
      if (port === 0 || port > 65_535) return [];
      const count = perUser.get(uid) ?? 0;
      if (uid !== this.#uid && count >= maxOfOtherUser) return [];
      const claim = this.#read(join(this.#dir, name), port, uid);
      // Count only claims that their owner wrote: another user may have written files under that name.
      if (claim !== undefined) perUser.set(uid, count + 1);
      return claim ?? [];
    });
  }

  #names(): readonly string[] {
    try {
      // Another user may have put a symbolic link there.
      return lstatSync(this.#dir).isDirectory() ? readdirSync(this.#dir) : [];
    } catch {
      // No claim exists yet, or this user cannot read the folder.
      return [];
    }
  }

  #read(path: string, port: number, uid: number): PortClaim | undefined {
    try {
      const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const stat = fstatSync(file);
        if (!stat.isFile() || stat.uid !== uid || stat.size > maxBytes) return undefined;
        return readClaim(readFileSync(file, 'utf8'), { port, uid, confirmedAt: stat.mtimeMs, path });
      } finally {
        closeSync(file);
      }
    } catch {
      // The file is gone, is a link, or cannot be read: no claim.
      return undefined;
    }
  }

  /** Writes a claim atomically. Returns false when one exists. Throws when claims cannot be written. */
  #write({ port, name, key }: PortOwner): boolean {
    const unfinished = join(this.#dir, `.${this.#uid}-${randomHex(12)}`);
    this.#makeDir();
    try {
      writeFileSync(unfinished, JSON.stringify({ home: this.#paths.home, service: name, key }), { flag: 'wx', mode: fileMode });
      chmodSync(unfinished, fileMode);
      linkSync(unfinished, this.#pathOf(port));
      return true;
    } catch (error) {
      if (hasErrno(error, 'EEXIST')) return false;
      throw error;
    } finally {
      rmSync(unfinished, { force: true });
    }
  }

  #makeDir(): void {
    try {
      mkdirSync(this.#dir, { mode: dirMode });
    } catch (error) {
      if (!hasErrno(error, 'EEXIST')) throw error;
    }
    const stat = lstatSync(this.#dir);
    if (!stat.isDirectory()) throw new Error(`${this.#dir} is no folder`);
    // The umask removed permissions. A process killed before this line may have left the folder so.
    if (stat.uid === this.#uid && (stat.mode & 0o7777) !== dirMode) chmodSync(this.#dir, dirMode);
  }

  /** Removes a claim unless another home of this user has replaced it meanwhile. */
  #remove(path: string, key: string | undefined): void {
    const aside = join(this.#dir, `.${this.#uid}-${randomHex(12)}`);
    try {
      renameSync(path, aside);
      const found = this.#read(aside, 1, this.#uid);
      if (found !== undefined && found.key !== key) linkSync(aside, path);
    } catch {
      // The claim is gone already, or belongs to another user.
    } finally {
      rmSync(aside, { force: true });
    }
  }

  #removeLeftovers(): void {
    for (const name of this.#names()) {
      if (!name.startsWith(`.${this.#uid}-`)) continue;
      const path = join(this.#dir, name);
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat !== undefined && stat.uid === this.#uid && this.#clock.now() - stat.mtimeMs > leftoverMs) rmSync(path, { force: true });
    }
  }

  #confirm(port: number, now: number): void {
    try {
      utimesSync(this.#pathOf(port), now / 1_000, now / 1_000);
    } catch {
      // The file was removed at this moment: the next comparison claims the port again.
    }
  }

  #pathOf(port: number): string {
    return join(this.#dir, `${port}.${this.#uid}`);
  }
}

/** Describes a port's owner for messages. It is safe to print: `readClaim` refuses unprintable text of other users. */
export function describeClaim({ service, home, uid }: PortClaim): string {
  return `service '${service}' of the home ${home} (user ${uid})`;
}

function readClaim(text: string, known: Pick<PortClaim, 'port' | 'uid' | 'confirmedAt' | 'path'>): PortClaim | undefined {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) return undefined;
  const { home, service, key } = value;
  if (typeof home !== 'string' || typeof service !== 'string' || typeof key !== 'string') return undefined;
  if (!printable.test(home) || nameProblem(service) !== undefined || !/^[\w-]{1,64}$/.test(key)) return undefined;
  return { ...known, home, service, key };
}
