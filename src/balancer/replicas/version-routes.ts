import type { SessionKey } from '../../domain/task.ts';
import type { Board } from '../board/board.ts';
import { pinnedVersion, sessionOf } from '../http1/affinity.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { VersionSplit, type VersionShare } from '../policy/version-split.ts';
import type { Replica } from './replica.ts';

/** The version that a request should get. */
export interface Route {
  readonly version: number;
  /** At least one. */
  readonly serving: readonly Replica[];
  /** The client asked for it: an ejected or silent replica of it comes before any other version. */
  readonly isPinned: boolean;
}

interface Routes {
  readonly normal: Route;
  readonly pinned: Route;
}

/** The routes of one endpoint set. They are made once, so a request allocates none. */
export class VersionRoutes {
  readonly #routes = new Map<number, Routes>();
  /** Undefined when versions have no shares. */
  readonly #split: VersionSplit | undefined;
  readonly #session: SessionKey | undefined;
  readonly #board: Board;

  private constructor(replicas: readonly Replica[], session: SessionKey | undefined, board: Board) {
    this.#session = session;
    this.#board = board;
    const shares = new Map<number, VersionShare>();
    for (const { version, share } of replicas) {
      const serving = replicas.filter((replica) => replica.version === version && replica.isServing);
      shares.set(version, { version, share, isServing: serving.length > 0 });
      const route = { version, serving, isPinned: false };
      if (serving.length > 0) this.#routes.set(version, { normal: route, pinned: { ...route, isPinned: true } });
    }
    const all = [...shares.values()];
    if (all.some(({ share, isServing }) => isServing && share > 0)) this.#split = new VersionSplit(all);
  }

  /** Undefined unless replicas of several versions serve: then versions do not matter. */
  static of(replicas: readonly Replica[], session: SessionKey | undefined, board: Board): VersionRoutes | undefined {
    const routes = new VersionRoutes(replicas, session, board);
    return routes.#routes.size > 1 ? routes : undefined;
  }

  /** The route of a request; undefined for any version. `earlier`: the version of its earlier attempts. */
  choose({ fields }: RequestHead, earlier: number | undefined): Route | undefined {
    const pinned = pinnedVersion(fields);
    const pin = pinned === undefined ? undefined : this.#routes.get(pinned)?.pinned;
    if (pin !== undefined || this.#split === undefined) return pin;
    const before = earlier === undefined ? undefined : this.#routes.get(earlier)?.normal;
    return before ?? this.#routes.get(this.#versionOf(fields, this.#split))?.normal;
  }

  #versionOf(fields: RequestHead['fields'], split: VersionSplit): number {
    const session = this.#session === undefined ? undefined : sessionOf(fields, this.#session);
    return session === undefined ? split.ofTurn(this.#board.takeTurn()) : split.ofSession(session);
  }
}
