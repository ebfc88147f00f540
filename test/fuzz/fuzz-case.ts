/** The input of both parsers. */
export interface FuzzCase {
  readonly kind: 'requests' | 'response';
  /** Latin-1: all bytes of one connection in one direction. */
  readonly text: string;
  /** Method of the request that a response answers. */
  readonly method: string;
  /** Offsets at which the bytes are cut into reads. */
  readonly cuts: readonly number[];
}

/** The kinds, in the order in which cases alternate. */
export const kinds = ['requests', 'response'] as const satisfies readonly FuzzCase['kind'][];

/** The result of one case. */
export interface Verdict {
  /** The disagreement of the two parsers; undefined when they agree. */
  readonly disagreement: string | undefined;
  /** Whether svc refused the bytes. */
  readonly isRefused: boolean;
  /** The known difference that excuses a disagreement. */
  readonly knownDifference: string | undefined;
}
