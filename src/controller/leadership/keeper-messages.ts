import type { LeaseSource } from './lease-source.ts';

/** Start parameters of the lease keeper thread. */
export interface KeeperSetup {
  readonly source: LeaseSource;
  readonly self: string;
  readonly fencePath: string;
}

/** Messages from the daemon: a heartbeat, and the order to release the lease. */
export type KeeperOrder = { readonly type: 'beat' } | { readonly type: 'release' };

/** Messages to the daemon. */
export type KeeperNews =
  | { readonly type: 'elected'; readonly term: number }
  | { readonly type: 'other-leads'; readonly holder: string }
  | { readonly type: 'lost'; readonly why: string }
  | { readonly type: 'released' };
