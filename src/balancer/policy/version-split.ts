/** One version of the endpoint set. */
export interface VersionShare {
  readonly version: number;
  /** Of the requests, 0 to 1. */
  readonly share: number;
  /** Some replica of it serves. */
  readonly isServing: boolean;
}

/** Versions with their upper limits on a scale from 0 to 1, ascending. */
interface Scale {
  readonly versions: readonly number[];
  readonly limits: readonly number[];
}

const wholeRange = 4_294_967_296;

/** 2^32 divided by the golden ratio, made odd: see Knuth, "The Art of Computer Programming", vol. 3, section 6.4. */
const goldenStep = 0x9e_37_79_b9;

/**
 * Chooses a version by exact shares. Pure.
 *
 * Turn n is at the place n / golden ratio, modulo 1, of a scale on which each version has a part as long as its share.
 * These places are spread evenly over any run of turns, so each version gets its share to within a few requests (Weyl
 * sequence). One shared count of turns is all the memory: shares are exact over all threads, and a changed endpoint set
 * loses no fractions of a turn.
 *
 * A session is at the place of its hash. The newest version is first, so its part grows at the cost of older versions
 * only: a session moves to the newest version at most once. Equal sets give equal results in all threads and balancers.
 */
export class VersionSplit {
  readonly #turns: Scale;
  readonly #sessions: Scale;
  readonly #serving: ReadonlySet<number>;

  /** Some serving version must have a share above 0. */
  constructor(versions: readonly VersionShare[]) {
    const sharing = versions.filter(({ share }) => share > 0).toSorted((a, b) => b.version - a.version);
    const serving = sharing.filter(({ isServing }) => isServing);
    this.#turns = scaleOf(
      serving,
      serving.reduce((sum, { share }) => sum + share, 0),
    );
    // Not by the sum: while a version is missing, the others' sessions stay.
    this.#sessions = scaleOf(sharing, 1);
    this.#serving = new Set(serving.map(({ version }) => version));
  }

  /** `turn` counts requests, modulo 2^32. */
  ofTurn(turn: number): number {
    return versionAt(this.#turns, (Math.imul(turn, goldenStep) >>> 0) / wholeRange);
  }

  /** The version of a session; while no replica of it serves, another one, the same for all its requests. */
  ofSession(session: string): number {
    const place = hashOf(session) / wholeRange;
    const version = versionAt(this.#sessions, place);
    return this.#serving.has(version) ? version : versionAt(this.#turns, place);
  }
}

function scaleOf(versions: readonly VersionShare[], whole: number): Scale {
  let sum = 0;
  const limits = versions.map(({ share }) => (sum += share) / whole);
  return { versions: versions.map(({ version }) => version), limits };
}

/** The last version also has what rounding or missing shares leave. */
function versionAt({ versions, limits }: Scale, place: number): number {
  let index = 0;
  while (index < versions.length - 1 && place >= (limits[index] ?? 1)) index += 1;
  return versions[index] ?? 0;
}

/**
 * FNV-1a with 32 bits (Fowler, Noll and Vo; draft-eastlake-fnv), then the finaliser of MurmurHash3 (Austin Appleby, public domain): FNV-1a alone
 * changes the high bits too little when only the last characters of ids differ.
 */
function hashOf(text: string): number {
  let hash = 0x81_1c_9d_c5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
