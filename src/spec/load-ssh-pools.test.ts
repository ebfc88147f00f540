import { expect, test } from 'vitest';
import { SvcError } from '../shared/errors.ts';
import { homeDir } from '../shared/env.ts';
import { parseSshPools } from './load-ssh-pools.ts';

const bare = { user: undefined, port: undefined, identityFile: undefined, proxyJump: undefined, hourlyUsd: 0 };

function problemsOf(text: string): readonly string[] {
  try {
    parseSshPools(text, '/home/u/.svc/ssh_pools.yaml');
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'SVC_INVALID_CONFIG') throw error;
    return error.problems.map(({ line, message, hint, excerpt }) => `${line}: ${message} | ${hint ?? ''} | ${excerpt ?? ''}`);
  }
  throw new Error('no problem was found');
}

test("SkyPilot's examples are read, with empty fields as absent", () => {
  const text = `
my-cluster:
  hosts:
    - 1.2.3.4
    - another-node
team:
  user: root
  identity_file: ~/.ssh/id_rsa
  password:
  hosts:
    - ip: 5.6.7.8
      user: alice
      identity_file: alice-key
      password:
    - ip: 5.6.7.9
`;
  const file = '/etc/pools/ssh.yaml';
  expect(parseSshPools(text, file)).toEqual([
    {
      name: 'my-cluster',
      file,
      hosts: [
        { ...bare, host: '1.2.3.4' },
        { ...bare, host: 'another-node' },
      ],
    },
    {
      name: 'team',
      file,
      hosts: [
        { ...bare, host: '5.6.7.8', user: 'alice', identityFile: '/etc/pools/alice-key' },
        { ...bare, host: '5.6.7.9', user: 'root', identityFile: `${homeDir()}/.ssh/id_rsa` },
      ],
    },
  ]);
});

test('settings of a pool apply to its hosts unless a host overrides them', () => {
  const text = `
lab:
  port: 2222
  proxy_jump: me@gate:22
  hourly_usd: 1.5
  max_processes: 500
  hosts: [a, { ip: b, port: 22, hourly_usd: 0, max_processes: 50 }]
`;
  expect(parseSshPools(text, '/p')[0]?.hosts).toEqual([
    { ...bare, host: 'a', port: 2222, proxyJump: 'me@gate:22', hourlyUsd: 1.5, maxProcesses: 500 },
    { ...bare, host: 'b', port: 22, proxyJump: 'me@gate:22', hourlyUsd: 0, maxProcesses: 50 },
  ]);
});

test.for(['', '# pools will come\n\n'])('a file without pools gives no pools', (text) => {
  expect(parseSshPools(text, '/p')).toEqual([]);
});

test('all problems are reported at once, with position and suggestion', () => {
  const problems = problemsOf(`
lab:
  hosst: [a]
other:
  identity-file: key
  hosts:
    - -oProxyCommand=reboot
    - me@host
    - ip: ok
      prot: 22
    - ip: ok
empty:
  hosts: []
`);
  expect(problems).toEqual([
    expect.stringMatching(/^3: lab: unknown field 'hosst' \| Did you mean 'hosts'\?/),
    expect.stringMatching(/^5: other: unknown field 'identity-file' \| Did you mean 'identity_file'\?/),
    expect.stringMatching(/^7: other.hosts\[0\]: .*is not an address/),
    expect.stringMatching(/^8: other.hosts\[1\]: .*is not an address/),
    expect.stringMatching(/^10: other.hosts\[2\]: unknown field 'prot' \| Did you mean 'port'\?/),
    expect.stringMatching(/^13: empty.hosts: must not be empty/),
  ]);
});

test('a duplicate host in a pool is a problem', () => {
  expect(problemsOf('lab: { hosts: [a, b, { ip: a }] }')).toEqual([
    expect.stringMatching(/^1: lab\.hosts\[2\]: the pool has the host a twice/),
  ]);
});

test('passwords are rejected with the reason and not shown', () => {
  const problems = problemsOf(`
lab:
  password: hunter2secret
  hosts:
    - ip: a
      password: swordfish9
`);
  expect(problems).toEqual([
    expect.stringMatching(/^3: lab: a host is reached with a key.*ssh-copy-id/),
    expect.stringMatching(/^6: lab\.hosts\[0\]: a host is reached with a key/),
  ]);
  expect(problems.join('\n')).not.toMatch(/hunter2secret|swordfish9/);
});

test.for(['- a\n- b\n', 'just text\n'])('a file that is not a map of pools is rejected', (text) => {
  expect(problemsOf(text)).toEqual([expect.stringContaining('expected a map of pools')]);
});
