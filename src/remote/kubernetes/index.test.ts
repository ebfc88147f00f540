import { expect, test } from 'vitest';
import { podCommand } from './index.ts';

/**
 * Expands as kubelet does (third_party/forked/golang/expansion): a doubled dollar sign becomes one. svc's script
 * contains no other reference.
 */
const expanded = (text: string): string => text.replaceAll('$$', '$');

test('the command after Kubernetes expansion equals the script without its comments', () => {
  const [shell, option, script = '', ...rest] = podCommand();
  expect([shell, option, ...rest]).toEqual(['/bin/sh', '-c', 'svc', '/svc/replica']);
  expect(script.replaceAll('$$', '')).not.toContain('$');
  expect(expanded(script)).toMatch(/^\nsvc_dir=\$1\nmkdir -p -- "\$1" \|\| /);
  expect(expanded(script)).toContain('"/proc/$$"');
  expect(expanded(script)).not.toMatch(/^\s*#/m);
});
