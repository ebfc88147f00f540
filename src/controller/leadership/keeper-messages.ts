import type { LeaseSource } from './lease-source.ts';

/** What the thread that keeps the lease is started with. */
export interface KeeperSetup {
  readonly source: LeaseSource;
  readonly self: string;
  readonly fencePath: string;
}

/** What the daemon tells it: that it is alive, and that the lease is to be given back. */
export type KeeperOrder = { readonly type: 'beat' } | { readonly type: 'release' };

/** What it tells the daemon. */
export type KeeperNews =
  | { readonly type: 'elected'; readonly term: number }
  | { readonly type: 'other-leads'; readonly holder: string }
  | { readonly type: 'lost'; readonly why: string }
  | { readonly type: 'released' };
