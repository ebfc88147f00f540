import { expect, test } from 'vitest';
import { podCommand } from './pod-init.ts';

/** As kubelet does it (third_party/forked/golang/expansion): a doubled sign is one, and nothing else of ours is a reference. */
const expanded = (text: string): string => text.replaceAll('$$', '$');

test('after Kubernetes has put variables into the command it is the script again, without its comments', () => {
  const [shell, option, script = '', ...rest] = podCommand();
  expect([shell, option, ...rest]).toEqual(['/bin/sh', '-c', 'svc', '/svc/replica']);
  expect(script.replaceAll('$$', '')).not.toContain('$');
  expect(expanded(script)).toMatch(/^\nsvc_dir=\$1\nmkdir -p -- "\$1" \|\| /);
  expect(expanded(script)).toContain('"/proc/$$"');
  expect(expanded(script)).not.toMatch(/^\s*#/m);
});
