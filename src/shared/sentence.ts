/** What others say, as a sentence: the server of a cluster, for instance, answers without a full stop. */
export function asSentence(text: string): string {
  const said = text.trim();
  return /[.!?]$/.test(said) ? said : `${said}.`;
}
