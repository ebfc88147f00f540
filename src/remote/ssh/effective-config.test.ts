import { expect, test } from 'vitest';
import { parseEffectiveConfig } from './effective-config.ts';

test('the output of ssh -G is parsed', () => {
  const said =
    'user ann\nhostname gpu1.lab.example\nport 2222\nidentityfile ~/.ssh/lab\nidentityfile ~/.ssh/id_ed25519\nproxyjump gate.lab.example\nproxyusefdpass no\n';
  expect(parseEffectiveConfig(said, 'gpu1')).toEqual({
    hostName: 'gpu1.lab.example',
    user: 'ann',
    port: 2222,
    identityFiles: ['~/.ssh/lab', '~/.ssh/id_ed25519'],
    proxyJump: 'gate.lab.example',
    hasProxyCommand: false,
  });
});

test('a ProxyCommand is recognised, and "none" means no proxy', () => {
  expect(parseEffectiveConfig('proxycommand nc %h %p\n', 'a')).toMatchObject({ hostName: 'a', port: 22, hasProxyCommand: true });
  expect(parseEffectiveConfig('proxycommand none\nproxyjump none\n', 'a')).toMatchObject({ hasProxyCommand: false, proxyJump: undefined });
});
