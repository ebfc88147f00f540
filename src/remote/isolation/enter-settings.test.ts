import { expect, test } from 'vitest';
import { enterComplaint, enterConf, insideResolvConf } from './enter-settings.ts';

test('values in the settings file are inert to the shell', () => {
  const conf = enterConf({
    isolation: 'userns',
    outbound: 'proxy',
    node: "/home/o'neill/node",
    socket: '/s',
    proxySocket: '/p',
    egress: '/e.ts',
    keep: ['/tmp/a', '/tmp/b c'],
    hide: ['/home/a/.svc', '/tmp/svc'],
  });
  expect(conf).toContain(`svc_kind='userns'\n`);
  expect(conf).toContain(`svc_node='/home/o'\\''neill/node'\n`);
  expect(conf).toContain(`svc_keep='/tmp/a\n/tmp/b c'\n`);
  expect(conf).toContain(`svc_hide='/home/a/.svc\n/tmp/svc'\n`);
});

test("a network tool's name server is used and the host's search settings are kept", () => {
  const host = '# made by x\nnameserver 192.0.2.1\nsearch corp.example\noptions ndots:2\n';
  expect(insideResolvConf('pasta', host)).toBe('nameserver 10.0.2.3\nsearch corp.example\noptions ndots:2\n');
  expect(insideResolvConf('slirp4netns', '')).toBe('nameserver 10.0.2.3\n');
  expect(insideResolvConf('proxy', host)).toBeUndefined();
});

test('an error is reduced to its last line, without the script position', () => {
  expect(enterComplaint('x\n/home/a/enter.sh: 115: exec: unshare: not found\n')).toBe('unshare: not found');
  expect(enterComplaint('unshare: unshare failed: Operation not permitted')).toBe('unshare: unshare failed: Operation not permitted');
  expect(enterComplaint('\n')).toBeUndefined();
});
