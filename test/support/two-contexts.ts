import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Writes a kubeconfig with the contexts `east` and `west` of an unreachable cluster, used by `ann`; `users`: her login.
 * Returns its path.
 */
export function writeTwoContexts(dir: string, users: readonly object[] = []): string {
  const file = join(dir, 'kubeconfig');
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'east',
    clusters: [{ name: 'nowhere', cluster: { server: 'https://127.0.0.1:1' } }],
    contexts: ['east', 'west'].map((name) => ({ name, context: { cluster: 'nowhere', user: 'ann' } })),
    users,
  };
  writeFileSync(file, JSON.stringify(kubeconfig));
  return file;
}
