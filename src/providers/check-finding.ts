import type { ProviderCheck } from './provider.ts';

/** The check of one part of a provider: a Kubernetes context or an SSH host. */
export interface CheckFinding {
  readonly isUsable: boolean;
  readonly text: string;
  readonly remedies: readonly string[];
  readonly isLate?: boolean;
}

/** For a part that has not answered within the time of the check. */
export function lateFinding(checkMs: number): CheckFinding {
  return { isUsable: false, text: `no answer within ${checkMs / 1_000} s yet`, remedies: [], isLate: true };
}

/** Combines the findings of parts with these names. Without a usable part, a late one makes the provider slow. */
export function checkOf(
  names: readonly string[],
  findings: readonly CheckFinding[],
  checkMs: number,
): Pick<ProviderCheck, 'remedies' | 'details' | 'slow'> & { readonly usable: number } {
  const usable = findings.filter(({ isUsable }) => isUsable).length;
  const late = names.filter((_, index) => findings[index]?.isLate === true);
  return {
    usable,
    remedies: [...new Set(findings.flatMap(({ remedies }) => remedies))],
    details: names.map((name, index) => [name, findings[index]?.text ?? ''] as const),
    ...(usable === 0 && late.length > 0 && { slow: `no answer from ${late.join(', ')} within ${checkMs / 1_000} s` }),
  };
}
