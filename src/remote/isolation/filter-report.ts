import type { IsolationKind } from './kinds.ts';

/** What the seccomp filter of a machine's programs depends on; see `add_filter` of enter.sh. */
interface FilterFacts {
  readonly isolation: IsolationKind;
  /** As `uname -m` reports it. */
  readonly arch: string;
  readonly hasPerl: boolean;
}

/** Processors whose numbers of system calls the filter has. */
const filtered = ['x86_64', 'aarch64'];

/** Whether programs have a filter of system calls, for `svc check`, and why not. Pure. */
export function describeFilter({ isolation, arch, hasPerl }: FilterFacts): string {
  if (isolation === 'none') return 'none: it needs an isolation';
  if (!filtered.includes(arch)) return `none: it does not support the processor ${arch}`;
  return hasPerl ? 'on (seccomp)' : 'none: there is no Perl, which sets it';
}

/** Empty when the filter is set, or when Perl would not help. Pure. */
export function filterRemedies({ isolation, arch, hasPerl }: FilterFacts): readonly string[] {
  return isolation === 'none' || hasPerl || !filtered.includes(arch) ? [] : ['For the filter of system calls, install Perl'];
}
