/** What is put before both parsers. */
export interface FuzzCase {
  readonly kind: 'requests' | 'response';
  /** Latin-1: all bytes of one connection in one direction. */
  readonly text: string;
  /** Of the request that a response answers. */
  readonly method: string;
  /** Where the bytes are cut into reads. */
  readonly cuts: readonly number[];
}

/** The kinds, in the order in which cases take turns. */
export const kinds = ['requests', 'response'] as const satisfies readonly FuzzCase['kind'][];

/** What came of one case. */
export interface Verdict {
  /** What the two parsers do not agree upon; undefined when all is well. */
  readonly disagreement: string | undefined;
  /** Whether ours refused the bytes. */
  readonly isRefused: boolean;
  /** The known difference that excuses a disagreement. */
  readonly knownDifference: string | undefined;
}
