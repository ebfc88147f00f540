import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { completionScripts } from './completion-scripts.ts';

/** What bash offers for words, the last of which is being typed. `svc` answers with the words it was given. */
function bashOffers(words: readonly string[], answer: string, cwd: string): string {
  const script = [
    completionScripts.bash,
    // Sourced twice, as by a start file that was read again.
    completionScripts.bash,
    `svc() { shift 2; for word in "$@"; do printf 'given:%s\\tsummary\\n' "$word"; done; printf '%s\\n' '${answer}'; }`,
    // Exists only while readline completes.
    'compopt() { printf "compopt %s\\n" "$*"; }',
    'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))',
    `${/-F (\S+) svc/.exec(completionScripts.bash)?.[1]}`,
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ].join('\n');
  return execFileSync('bash', ['--norc', '-c', script, 'bash', ...words], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

test('bash hands over the words up to the cursor and offers what comes back, without summaries', async () => {
  await withTempHome((cwd) => {
    expect(bashOffers(['svc', 'serve', 'down', ''], ':none', cwd)).toBe('given:serve\ngiven:down\ngiven:\n');
  });
});

test('bash adds files and folders by itself where they may stand', async () => {
  await withTempHome((cwd) => {
    expect(bashOffers(['svc', ''], ':files', cwd)).toContain('compopt -o default');
    expect(bashOffers(['svc', ''], ':folders', cwd)).toContain('compopt -o dirnames');
  });
});

test('what was typed is never run at Tab', async () => {
  await withTempHome((cwd) => {
    const offered = bashOffers(['svc', 'serve', '$(touch evil)', '`touch evil`', '; touch evil'], ':none', cwd);
    expect(offered).toContain('given:$(touch evil)\n');
    expect(existsSync(join(cwd, 'evil'))).toBe(false);
  });
});
