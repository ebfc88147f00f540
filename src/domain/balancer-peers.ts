/** A balancer host as one of its peers sees it. */
export interface SeenPeer {
  readonly name: string;
  /** Whether requests are led to it: it has the label. */
  readonly isServing: boolean;
  /** Looks in a row that it did not answer. */
  readonly failures: number;
}

/** What a balancer host knows of itself. */
export interface OwnState {
  readonly name: string;
  readonly isServing: boolean;
  /** It serves all that it was told to serve, and is not about to end. */
  readonly isReady: boolean;
  /** It knows of all its services which replicas they have. */
  readonly isInformed: boolean;
  /** It is about to end: nothing new is to come. */
  readonly isEnding: boolean;
  /** How long it has been without the label, ms. */
  readonly outForMs: number;
}

/** A change of a label: whether requests are led there. */
export interface PeerChange {
  readonly name: string;
  readonly serving: boolean;
}

/** So many looks in a row without an answer, and a peer is taken out. */
export const silentAfter = 3;

/**
 * Who was taken out by others waits so long before it puts itself in again, ms: two that do not reach each other, though both live, would else change
 * their labels all the time.
 */
export const backAfterMs = 2_000;

/**
 * Who does not know the replicas yet would have requests wait that others can send on, and so stays out for so long, ms. Not for longer: the controller of one
 * service may be stuck, and the others need the host.
 */
export const uninformedMs = 15_000;

/**
 * Which labels a balancer host changes now. It puts itself in when it serves (at once when nobody else does: requests then wait there rather than fail) and out when it is about to end; peers that are silent it takes out, but never so
 * that nobody is left: it has to be in itself, and well, as only that shows that a silent peer is not the fault of its own. Pure.
 */
export function decidePeers(own: OwnState, peers: readonly SeenPeer[]): readonly PeerChange[] {
  if (own.isEnding) return own.isServing ? [{ name: own.name, serving: false }] : [];
  if (!own.isServing) {
    const isAlone = !peers.some(({ isServing }) => isServing);
    const isKnowing = own.isInformed ? own.outForMs >= backAfterMs : own.outForMs >= uninformedMs;
    return own.isReady && (isAlone || isKnowing) ? [{ name: own.name, serving: true }] : [];
  }
  if (!own.isReady) return [];
  return peers.filter(({ isServing, failures }) => isServing && failures >= silentAfter).map(({ name }) => ({ name, serving: false }));
}
