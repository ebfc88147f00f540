import { describe, expect, test, vi } from 'vitest';
import { codeOf, parseText, problemsOf, refusalOf } from '../../test/support/task-text.ts';

test('values are passed on verbatim; lists and maps become JSON', () => {
  const source = `
envs:
  INT: 1
  OCTAL: 010
  FLOAT: 1.50
  YES: yes
  TRUE: True
  DATE: 2024-01-01
  EMPTY: ""
  QUOTED: "a b"
  BLOCK: |
    two
    lines
  LIST: [1, two, {a: null}]
  constructor: x
`;
  expect(parseText(source).envs).toEqual({
    INT: '1',
    OCTAL: '010',
    FLOAT: '1.50',
    YES: 'yes',
    TRUE: 'True',
    DATE: '2024-01-01',
    EMPTY: '',
    QUOTED: 'a b',
    BLOCK: 'two\nlines\n',
    LIST: '[1,"two",{"a":null}]',
    constructor: 'x',
  });
});

test('command line values override those of the file and may add names', () => {
  const task = parseText('envs: {A: file, B: file}\nsecrets: {S: null}\n', {
    envs: { A: 'flag', C: 'new' },
    secrets: { S: 'hidden', T: 'more' },
  });
  expect(task.envs).toEqual({ A: 'flag', B: 'file', C: 'new' });
  expect(task.secrets).toEqual({ S: 'hidden', T: 'more' });
});

test('a secret of the file stays one, whichever flag sets it', () => {
  const task = parseText('secrets: {KEY: null}\nenvs: {OTHER: null}\n', { envs: { KEY: 'hidden' }, secrets: { OTHER: 'hidden too' } });
  expect(task).toMatchObject({ envs: {}, secrets: { KEY: 'hidden', OTHER: 'hidden too' } });
});

test('all variables without a value are reported at once, with their positions', () => {
  const error = refusalOf('envs:\n  A: null\n  B:\n  C: ""\nsecrets:\n  KEY: ~\n');
  expect(error).toMatchObject({
    code: 'SVC_MISSING_ENV',
    message: 'These variables have no value: A, B, KEY.',
    hint: 'Add: --env A=VALUE --env B=VALUE --secret KEY=VALUE',
  });
  expect(error.problems.map(({ line, message }) => `${line} ${message}`)).toEqual([
    '2 envs.A: the variable has no value',
    '3 envs.B: the variable has no value',
    '6 secrets.KEY: the secret has no value',
  ]);
});

test('fields that depend on a missing variable are not checked', () => {
  const source = 'envs: {N: , P: }\nservice: {ports: 80, replicas: $N, readiness_probe: $P}\nfile_mounts: {/a: $P}\n';
  expect(codeOf(source)).toBe('SVC_MISSING_ENV');
});

const variables = { envs: { PATH_PART: 'v1', N: '3', QUOTE: 'a"b: {c', LINES: 'x\ny' }, secrets: { KEY: 's3cret"value' } };

test('variables are substituted only in service, file_mounts, workdir and volumes', () => {
  const task = parseText(
    `
name: $N
workdir: ./\${PATH_PART}
run: echo $N
service:
  ports: 80
  readiness_probe:
    path: /$PATH_PART/\${N}x$UNKNOWN
    headers: {Authorization: Bearer $KEY}
file_mounts: {/data/$PATH_PART: ./$N}
`,
    variables,
  );
  expect(task).toMatchObject({
    name: '$N',
    run: 'echo $N',
    workdir: { path: '/project/v1' },
    fileMounts: [{ target: '/data/v1', source: { path: '/project/3' } }],
  });
  expect(task.service?.readinessProbe).toMatchObject({ path: '/v1/3x$UNKNOWN', headers: { Authorization: 'Bearer s3cret"value' } });
});

test('a secret overrides an env of the same name', () => {
  const source = 'service: {ports: 80, readiness_probe: /$A}\n';
  expect(parseText(source, { envs: { A: 'env' }, secrets: { A: 'secret' } }).service?.readinessProbe.path).toBe('/secret');
});

test('a whole substituted value becomes number or boolean where expected, else stays text', () => {
  const task = parseText(
    'service: {ports: $P, replicas: $N, expose: $YES, load_balancer: {max_body_size: $N}, readiness_probe: {path: /, headers: {X-Number: $N}}}\n',
    { envs: { N: '3', P: '8080', YES: 'yes' } },
  );
  expect(task.service).toMatchObject({
    replicaPort: 8080,
    replicaPolicy: { minReplicas: 3 },
    expose: true,
    readinessProbe: { headers: { 'X-Number': '3' } },
  });
});

test.each([
  ['post_data: {a: $QUOTE, n: 1}', '{"a":"a\\"b: {c","n":1}'],
  [`post_data: '{"a": "$QUOTE$LINES", "$N": $N}'`, '{"a": "a\\"b: {cx\\ny", "3": 3}'],
  [`post_data: '["\\"$N", "$OTHER"]'`, '["\\"3", "$OTHER"]'],
])('a value with quotes and brackets does not change the structure: %s', (line, expected) => {
  const source = `service:\n  ports: 80\n  readiness_probe:\n    path: /\n    ${line}\n`;
  expect(parseText(source, variables).service?.readinessProbe.postData).toBe(expected);
});

test('a value that makes JSON invalid is a problem', () => {
  const source = `service: {ports: 80, readiness_probe: {path: /, post_data: '{"n": $QUOTE}'}}\n`;
  expect(problemsOf(source, variables)).toEqual([
    '1:60 service.readiness_probe.post_data: is not valid JSON (Write JSON text, or a map in YAML.)',
  ]);
});

test('a value with a line break cannot add a header', () => {
  const source = 'service: {ports: 80, readiness_probe: {path: /, headers: {X: $LINES}}}\n';
  expect(problemsOf(source, variables)).toEqual(['1:62 service.readiness_probe.headers.X: must be one line of Latin-1 text']);
});

const secret = 'hunter2hunter2';
test.each([
  'service: {ports: 80, replicas: $KEY}',
  'service: {ports: 80, readiness_probe: $KEY}',
  'service: {ports: 80, readiness_probe: {path: /, headers: {$KEY: 1}}}',
  'service: {ports: 80, readiness_probe: {path: /, post_data: "{$KEY"}}',
  'service: {ports: 80, load_balancing_policy: $KEY}',
  'service: {ports: 80, $KEY: 1}',
  'service: {ports: 80, tls: $KEY}',
  'file_mounts: {/a: $KEY://x}',
  'file_mounts: {/$KEY: [1]}',
  'file_mounts: {/$KEY: ./a, /$KEY/: ./b}',
  'workdir: {url: a, $KEY: 1}',
  'runn: hunter2hunter2',
  'secrets:\n  A: hunter2hunter2\n  1B: x',
  'secrets: {A: hunter2hunter2, 1B: x}',
  'secrets:\n  A: "hunter2hunter2',
  'secrets:\n  A: |\n    hunter2hunter2\n  : : [',
  'secrets:\n- hunter2hunter2: [',
  '"secrets": {A: hunter2hunter2\nrun: x',
])('no problem shows a secret: %s', (source) => {
  const error = refusalOf(source, { secrets: { KEY: secret } });
  expect(JSON.stringify([error.message, error.hint, error.problems])).not.toContain(secret);
  expect(error.problems.length).toBeGreaterThan(0);
});

test.each([
  ['replicas: $N', '-1', "service.replicas: must be at least 0, found the value of '$N'"],
  ['replicas: $N', 'two', "service.replicas: expected a whole number, found the value of '$N'"],
  ['readiness_probe: $N', '5', 'service.readiness_probe: must start with "/"'],
  ['$N: 1', 'x', "service: unknown field '$N'"],
])('an invalid value is not shown: %s with %s', (line, value, message) => {
  const [problem] = refusalOf(`service:\n  ports: 80\n  ${line}\n`, { secrets: { N: value } }).problems;
  expect(problem).toMatchObject({ message, line: 3 });
});

test('names and values from other sources than the command line are checked', () => {
  const error = refusalOf('run: x\n', { envs: { '1A': 'x', B: 'a\0b' }, secrets: { 'a b': 'y' } });
  expect(error.problems.map(({ message }) => message)).toEqual([
    "'1A', given beside the file, is not the name of a variable",
    'the value of B, given beside the file, holds the NUL character',
    "'a b', given beside the file, is not the name of a variable",
  ]);
});

test('problems quote the text of the file', () => {
  const source = 'service:\n  ports: 80\n  replica_policy: {min_replicas: $A, max_replicas: $B}\n';
  expect(problemsOf(source, { secrets: { A: '4711', B: '42' } })).toEqual([
    '3:52 service.replica_policy.max_replicas: max_replicas ($B) must not be less than min_replicas ($A)',
  ]);
});

describe('substituted text stays within the limit of the file', () => {
  const mebibyte = 1_048_576;
  const tooLong = 'with the values of its variables put in, the file is larger than 1 MiB';
  const value = 'x'.repeat(100_000);
  const mounts = (line: (index: number) => string): string =>
    `envs:\n  A: "${value}"\nrun: serve\nfile_mounts:\n${Array.from({ length: 3_000 }, (_, index) => `  ${line(index)}\n`).join('')}`;
  const escapes = `envs:\n  A: "${'\\x01'.repeat(30_000)}"\nrun: serve\nservice:\n  port: 80\n`;

  test.for([
    ['many references in one text', `envs:\n  A: "${value}"\nrun: serve\nworkdir: "${'$A'.repeat(5_000)}"\n`, '4:10'],
    ['references in many texts', mounts((index) => `/d${index}: $A`), '15:9'],
    ['references in many keys', mounts((index) => `/d${index}$A: /x`), '15:3'],
    ['one text behind many aliases', mounts((index) => (index === 0 ? '/d0: &a $A' : `/d${index}: *a`)), '5:11'],
    ['escapes in JSON', `${escapes}  readiness_probe:\n    path: /\n    post_data: '["$A$A$A$A$A$A$A"]'\n`, '8:16'],
  ] as const)('%s: rejected with file, line and column', ([, source, position]) => {
    expect(source.length).toBeLessThan(mebibyte);
    const error = refusalOf(source);
    expect(error).toMatchObject({ code: 'SVC_INVALID_TASK', problems: [{ file: '/project/service.yaml', message: tooLong }] });
    expect(`${error.problems[0]?.line}:${error.problems[0]?.column}`).toBe(position);
    expect(JSON.stringify(error.problems).length).toBeLessThan(1_000);
  });

  test('beyond the limit no value is escaped for JSON', () => {
    const escaping = vi.spyOn(JSON, 'stringify');
    const source = `${escapes}  readiness_probe:\n    path: /\n    post_data: '["${'$A'.repeat(500)}"]'\n`;
    expect(refusalOf(source).code).toBe('SVC_INVALID_TASK');
    expect(escaping.mock.calls.filter(([text]) => String(text).length === 30_000).length).toBeLessThan(10);
    escaping.mockRestore();
  });

  test('text just below the limit is accepted', () => {
    const { fileMounts } = parseText(`envs:\n  A: "${value}"\nrun: serve\nfile_mounts:\n  /a: "/${'$A'.repeat(10)}"\n`);
    expect(JSON.stringify(fileMounts).length).toBeGreaterThan(1_000_000);
  });
});

test('a value longer than Linux allows is rejected from any source', () => {
  const large = 'x'.repeat(131_069);
  const message = 'the value is larger than 128 KiB, and Linux passes none of that size to a program';
  const hint = 'Put it into a file, and bring that with file_mounts or workdir.';
  expect(codeOf(`envs:\n  A: "${large}"\nrun: serve\n`)).toBeUndefined();
  expect(problemsOf(`envs:\n  A: "${large}x"\nrun: serve\n`)).toEqual([`2:6 envs.A: ${message} (${hint})`]);
  expect(problemsOf('run: serve\n', { secrets: { KEY: 'é'.repeat(65_536) } })).toEqual([`1:1 secrets.KEY: ${message} (${hint})`]);
});
