import { execFileSync } from 'node:child_process';

/** Returns why machines and nodes cannot be isolated from this computer; undefined when they can. */
export function whyNoNamespaces(): string | undefined {
  try {
    execFileSync('unshare', ['--net', '--mount', '--pid', '--fork', 'ip', 'link', 'add', 'test', 'type', 'bridge'], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `this kernel or container does not allow namespaces and bridges: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`;
  }
}
