import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { shortFingerprint } from '../shared/hex.ts';
import { isObject } from '../shared/json.ts';
import { readJsonFile, writeFileAtomic } from '../shared/system/files.ts';

/** A tunnel's end on its machine: a port, or a Unix socket's absolute path. */
export type TunnelEnd = number | string;

/** A local socket file and its end, as its carrier names it. */
export interface Tunnel {
  readonly socket: string;
  readonly to: TunnelEnd;
}

/** The tunnels to one machine. They share the route: the pod, or the ssh connection. */
interface TunnelRecord<Route> {
  readonly tunnels: readonly Tunnel[];
  readonly route: Route;
}

interface TunnelRecordsSettings<Route> {
  /** Folder with one record per machine. */
  readonly dir: string;
  readonly socketDir: string;
  readonly readRoute: (fields: Readonly<Record<string, unknown>>) => Route | undefined;
}

/**
 * The tunnels on disk, for later processes. An invalid record counts as absent. The folders and the field are still
 * named `ways`: a running forwarder of an earlier version reads these records too.
 */
export class TunnelRecords<Route extends object> {
  readonly dir: string;
  readonly #settings: TunnelRecordsSettings<Route>;

  constructor(settings: TunnelRecordsSettings<Route>) {
    this.dir = settings.dir;
    this.#settings = settings;
  }

  /**
   * A tunnel's socket file. It never changes, also not in later versions: running ssh processes, forwarders and
   * balancers use it. Short, because Linux allows 107 bytes for a socket's path. Pure.
   */
  socket(name: string, to: TunnelEnd): string {
    return join(this.#settings.socketDir, `w${name}.${typeof to === 'number' ? to : shortFingerprint(to)}`);
  }

  /** Undefined when there never were any tunnels, or they were closed. */
  read(name: string): TunnelRecord<Route> | undefined {
    const value = readJsonFile(join(this.dir, name))?.value;
    if (!isObject(value) || !Array.isArray(value['ways'])) return undefined;
    const route = this.#settings.readRoute(value);
    return route && { tunnels: value['ways'].filter(isTunnel), route };
  }

  write(name: string, { tunnels, route }: TunnelRecord<Route>): void {
    writeFileAtomic(join(this.dir, name), JSON.stringify({ ...route, ways: tunnels }));
  }

  remove(name: string): void {
    rmSync(join(this.dir, name), { force: true });
  }

  /** Includes invalid records. */
  list(): readonly string[] {
    try {
      return readdirSync(this.dir).filter((name) => /^[0-9a-f]{10}$/.test(name));
    } catch {
      return [];
    }
  }
}

function isTunnel(value: unknown): value is Tunnel {
  return isObject(value) && typeof value['socket'] === 'string' && (typeof value['to'] === 'number' || typeof value['to'] === 'string');
}
