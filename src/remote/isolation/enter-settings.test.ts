import { expect, test } from 'vitest';
import { enterComplaint, enterConf, insideResolvConf } from './enter-settings.ts';

test('settings are shell in which no value means anything to the shell', () => {
  const conf = enterConf({
    isolation: 'userns',
    outbound: 'proxy',
    node: "/home/o'neill/node",
    socket: '/s',
    proxySocket: '/p',
    egress: '/e.ts',
    keep: ['/tmp/a', '/tmp/b c'],
  });
  expect(conf).toContain(`svc_kind='userns'\n`);
  expect(conf).toContain(`svc_node='/home/o'\\''neill/node'\n`);
  expect(conf).toContain(`svc_keep='/tmp/a\n/tmp/b c'\n`);
});

test('where the network is made by a tool its name server is asked, and short names mean what they mean on the host', () => {
  const host = '# made by x\nnameserver 192.0.2.1\nsearch corp.example\noptions ndots:2\n';
  expect(insideResolvConf('pasta', host)).toBe('nameserver 10.0.2.3\nsearch corp.example\noptions ndots:2\n');
  expect(insideResolvConf('slirp4netns', '')).toBe('nameserver 10.0.2.3\n');
  expect(insideResolvConf('proxy', host)).toBeUndefined();
});

test('a complaint is the last line, without the place in our script', () => {
  expect(enterComplaint('x\n/home/a/enter.sh: 115: exec: unshare: not found\n')).toBe('unshare: not found');
  expect(enterComplaint('unshare: unshare failed: Operation not permitted')).toBe('unshare: unshare failed: Operation not permitted');
  expect(enterComplaint('\n')).toBeUndefined();
});
