import { isolationKinds, type IsolationKind, type OutboundKind } from './kinds.ts';

/** The isolation of machines on a computer, and why no better kind is used. */
export interface FoundIsolation {
  readonly kind: IsolationKind;
  readonly outbound: OutboundKind;
  /** Better kinds that failed, with the reason. */
  readonly refused: readonly (readonly [name: string, why: string])[];
}

/** The computer on which isolation kinds are tried. */
export interface TriedComputer {
  readonly hasRoute: () => boolean;
  /** Runs a command in an isolation. Undefined: it exited with 0; else the reason in a few words. */
  readonly whyNot: (kind: Exclude<IsolationKind, 'none'>, outbound: OutboundKind, argv: readonly string[]) => Promise<string | undefined>;
}

/** Best first. An ordinary user skips `root`: its failure is certain and not worth a report. */
export function kindsFor({ isRoot }: { readonly isRoot: boolean }): readonly IsolationKind[] {
  return isolationKinds.filter((kind) => kind !== 'root' || isRoot);
}

/** The first kind that works, tried once by entering it, with its best outbound kind; else `none`. */
export async function findIsolation(kinds: readonly IsolationKind[], computer: TriedComputer): Promise<FoundIsolation> {
  const refused: (readonly [string, string])[] = [];
  for (const kind of kinds) {
    if (kind === 'none') break;
    const why = await computer.whyNot(kind, 'none', ['true']);
    if (why === undefined) {
      const found = await findOutbound(kind, computer);
      return { kind, outbound: found.outbound, refused: [...refused, ...found.refused] };
    }
    refused.push([kind, why]);
  }
  return { kind: 'none', outbound: 'host', refused };
}

/** In /proc/net/route: the second field, the destination, is 0.0.0.0. */
const defaultRoute = '^[^[:space:]]*[[:space:]]00000000';

async function findOutbound(
  kind: Exclude<IsolationKind, 'none'>,
  computer: TriedComputer,
): Promise<Pick<FoundIsolation, 'outbound' | 'refused'>> {
  if (!computer.hasRoute()) return { outbound: 'none', refused: [] };
  const refused: (readonly [string, string])[] = [];
  for (const outbound of ['slirp4netns', 'pasta'] as const) {
    const why = await computer.whyNot(kind, outbound, ['grep', '-q', defaultRoute, '/proc/net/route']);
    if (why === undefined) return { outbound, refused };
    refused.push([outbound, why]);
  }
  return { outbound: 'proxy', refused };
}
