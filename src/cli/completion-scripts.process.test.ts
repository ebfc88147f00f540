import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { completionScripts } from './commands/completion.ts';

/** The completions that bash offers for words, of which the last is being typed. A fake `svc` prints `answer`. */
function bashOffers(words: readonly string[], answer: string, cwd: string): string {
  const script = [
    completionScripts.bash,
    // Sourced twice, as when a start file is read again.
    completionScripts.bash,
    `svc() { shift 2; for word in "$@"; do printf 'given:%s\\tsummary\\n' "$word"; done; printf '%s\\n' '${answer}'; }`,
    // bash has it only while readline completes.
    'compopt() { printf "compopt %s\\n" "$*"; }',
    'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))',
    `${/-F (\S+) svc/.exec(completionScripts.bash)?.[1]}`,
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ].join('\n');
  return execFileSync('bash', ['--norc', '-c', script, 'bash', ...words], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

test('bash passes the words up to the cursor and offers the answers without summaries', async () => {
  await withTempHome((cwd) => {
    expect(bashOffers(['svc', 'serve', 'down', ''], ':none', cwd)).toBe('given:serve\ngiven:down\ngiven:\n');
  });
});

test('bash itself completes files and folders where they are allowed', async () => {
  await withTempHome((cwd) => {
    expect(bashOffers(['svc', ''], ':files', cwd)).toContain('compopt -o default');
    expect(bashOffers(['svc', ''], ':folders', cwd)).toContain('compopt -o dirnames');
  });
});

test('the shell never evaluates typed words at Tab', async () => {
  await withTempHome((cwd) => {
    const offered = bashOffers(['svc', 'serve', '$(touch evil)', '`touch evil`', '; touch evil'], ':none', cwd);
    expect(offered).toContain('given:$(touch evil)\n');
    expect(existsSync(join(cwd, 'evil'))).toBe(false);
  });
});
