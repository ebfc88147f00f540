import { expect, test } from 'vitest';
import { parseMemoryKills } from './index.ts';

test.for([
  ['version 2', 'low 0\nhigh 0\nmax 31\noom 1\noom_kill 2\nlimit 2147483648\n', { kills: 2, limitBytes: 2_147_483_648 }],
  ['version 2 without a limit', 'low 0\noom_kill 0\nlimit max\n', { kills: 0 }],
  ['version 1', 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\nlimit 67108864\n', { kills: 1, limitBytes: 67_108_864 }],
  ['version 1 without a limit', 'oom_kill_disable 0\nunder_oom 0\noom_kill 0\nlimit 9223372036854771712\n', { kills: 0 }],
  ['an old kernel without a kill counter', 'oom_kill_disable 0\nunder_oom 0\nlimit 67108864\n', undefined],
  ['no visible control group', '', undefined],
] as const)('OOM kills from cgroup files: %s', ([, text, expected]) => {
  expect(parseMemoryKills(text)).toEqual(expected);
});
