import { expect, test } from 'vitest';
import { problemsOf, refusalOf } from '../../test/support/task-text.ts';

test('all problems of a file are reported at once, in order of position', () => {
  const source = `name: 5
service:
  replica: 2
  readiness_probe: health
resources:
  ports: 8080
  accelerators: T4:0
  cpu: 4
envs:
  TOKEN:
`;
  expect(problemsOf(source)).toEqual([
    '1:7 name: expected text, found the number 5 (Put it in quotes to make it text: "5")',
    "3:3 service: unknown field 'replica' (Did you mean 'replicas'?)",
    '4:20 service.readiness_probe: must start with "/" (Write for instance: /health)',
    '7:17 resources.accelerators: the count must be greater than 0 (Leave accelerators out when none is needed.)',
    "8:3 resources: unknown field 'cpu' (Did you mean 'cpus'?)",
    '10:3 envs.TOKEN: the variable has no value (Give it with --env TOKEN=VALUE, --env TOKEN or --env-file; to make it empty, write TOKEN: "".)',
  ]);
  expect(refusalOf(source)).toMatchObject({ code: 'SVC_INVALID_TASK', message: 'The task file /project/service.yaml has 6 problems.' });
});

test('a rejected part does not hide rules about the rest', () => {
  const source = `service:
  ports: 80
  replicas: two
  replica_policy:
    min_replicas: 3
    max_replicas: 1
    upscale_delay_seconds: x
`;
  expect(problemsOf(source)).toEqual([
    "3:13 service.replicas: expected a whole number, found text 'two'",
    expect.stringContaining('4:3 service: replicas and replica_policy cannot both be given'),
    '6:19 service.replica_policy.max_replicas: max_replicas (1) must not be less than min_replicas (3)',
    "7:28 service.replica_policy.upscale_delay_seconds: expected a number, found text 'x'",
  ]);
});

test.each([
  'resources: {ports: abc}\nservice: {}\n',
  'service: {ports: 0}\n',
  'resources: {any_of: [{ports: 80}, {ports: x}]}\nservice: {}\n',
])('a rejected port is not also reported as missing: %j', (source) => {
  expect(problemsOf(source)).toHaveLength(1);
});

test('a problem shows its line and the one before, with a caret', () => {
  const [problem] = refusalOf('resources: {ports: 80}\nservice:\n  replica: 2\n').problems;
  expect(problem?.excerpt).toBe('2 | service:\n3 |   replica: 2\n  |   ^');
  expect(problem?.file).toBe('/project/service.yaml');
});

test('a problem in merged content points to the original position', () => {
  const source = `config: {x: &probe {path: health}}
service:
  ports: 80
  readiness_probe:
    <<: *probe
    timeout_seconds: 3
`;
  expect(problemsOf(source)).toEqual(['1:27 service.readiness_probe.path: must start with "/" (Write for instance: /health)']);
});

test('at most 100 problems are listed, with their total number', () => {
  const error = refusalOf(Array.from({ length: 150 }, (_, index) => `x${index}: 1\n`).join(''));
  expect(error.problems).toHaveLength(100);
  expect(error.message).toBe('The task file /project/service.yaml has 150 problems. The first 100 are listed.');
});

test('a control character is rejected and not printed', () => {
  const [problem] = refusalOf('run: a\u001b[2Jb\n').problems;
  expect(problem).toMatchObject({
    line: 1,
    column: 7,
    message: 'the control character U+001B is not allowed',
    excerpt: '1 | run: a·[2Jb\n  |       ^',
  });
});

test('keys and values are quoted without characters that change the terminal', () => {
  const [problem] = refusalOf('"a\\u202eb\\e[1m": 1\n').problems;
  expect(problem?.message).toBe("unknown field 'a·b·[1m'");
});

test('a tab is rejected at its position', () => {
  expect(problemsOf('service:\n\treplicas: 1\n')).toEqual(['2:1 a tab cannot be used for indentation (Use spaces, two for each level.)']);
});

test('Windows line ends and a byte order mark are accepted', () => {
  expect(problemsOf('\uFEFFname: a\r\nrunn: x\r\n')).toEqual(["2:1 unknown field 'runn' (Did you mean 'run'?)"]);
});
