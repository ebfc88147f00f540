/** What a process that was started for a term says of itself, so that the leader of another term renews it. */
export function termConfig(term: number): string {
  return `term-${term}`;
}
