import { isolationKinds, type IsolationKind, type OutboundKind } from './kinds.ts';

/** How machines on a computer are kept apart, and why nothing better is used. */
export interface FoundIsolation {
  readonly kind: IsolationKind;
  readonly outbound: OutboundKind;
  /** Better ones that were tried and failed, with the reason. */
  readonly refused: readonly (readonly [name: string, why: string])[];
}

/** The computer on which isolations are tried. */
export interface TriedComputer {
  readonly hasRoute: () => boolean;
  /** Really enters an isolation and runs a command there. Undefined when it ended with 0, else why not, in a few words. */
  readonly whyNot: (kind: Exclude<IsolationKind, 'none'>, outbound: OutboundKind, argv: readonly string[]) => Promise<string | undefined>;
}

/** The kinds that are worth a try, best first. That `root` does not work for an ordinary user is no finding. */
export function kindsFor({ isRoot }: { readonly isRoot: boolean }): readonly IsolationKind[] {
  return isolationKinds.filter((kind) => kind !== 'root' || isRoot);
}

/** The first of the kinds that works, found by really doing each once, with the best way out that it has; `none` when none of them does. */
export async function findIsolation(kinds: readonly IsolationKind[], computer: TriedComputer): Promise<FoundIsolation> {
  const refused: (readonly [string, string])[] = [];
  for (const kind of kinds) {
    if (kind === 'none') break;
    const why = await computer.whyNot(kind, 'none', ['true']);
    if (why === undefined) {
      const way = await findOutbound(kind, computer);
      return { kind, outbound: way.outbound, refused: [...refused, ...way.refused] };
    }
    refused.push([kind, why]);
  }
  return { kind: 'none', outbound: 'host', refused };
}

async function findOutbound(
  kind: Exclude<IsolationKind, 'none'>,
  computer: TriedComputer,
): Promise<Pick<FoundIsolation, 'outbound' | 'refused'>> {
  if (!computer.hasRoute()) return { outbound: 'none', refused: [] };
  const refused: (readonly [string, string])[] = [];
  for (const outbound of ['slirp4netns', 'pasta'] as const) {
    const why = await computer.whyNot(kind, outbound, ['sh', '-c', 'ip -4 route show default | grep -q default']);
    if (why === undefined) return { outbound, refused };
    refused.push([outbound, why]);
  }
  return { outbound: 'proxy', refused };
}
