import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { test } from 'vitest';
import { codeOf, refusalOf } from '../../test/support/task-text.ts';
import { serviceSection } from './schema/service.ts';
import { machineSection } from './schema/resources.ts';
import { taskSection } from './schema/task.ts';
import { composeYaml } from './yaml/compose.ts';
import { toValue } from './yaml/node.ts';
import { SourceText } from './source-text.ts';

/** Allowed results of `codeOf`; any other error is thrown on and fails the property. */
const documented = new Set<string | undefined>([undefined, 'SVC_INVALID_TASK', 'SVC_MISSING_ENV', 'SVC_FILE_TOO_BIG']);

const given = { envs: { A: '1', B: 'text "with" quotes', C: '' }, secrets: { S: 'hunter2hunter2' } };

const keys = fc.oneof(
  fc.constantFrom(...Object.keys(taskSection.shape), ...Object.keys(serviceSection.shape), ...Object.keys(machineSection.shape)),
  fc.constantFrom('path', 'min_replicas', 'max_replicas', 'constructor', '__proto__', 'toString', '<<', '', '$A', '${S}', 'a b', '1'),
  fc.string({ maxLength: 5 }),
);
const scalars = fc.oneof(
  fc.constantFrom(
    '$A',
    '${B}',
    '$S',
    '$C',
    '$D',
    '/$S',
    'L4:2',
    '4+',
    '16GB',
    '8080-8081',
    'aws/us-east-1',
    'yes',
    '~',
    '1e3',
    '.inf',
    '-1',
    '0',
    '0x_',
    's3://b',
    '\u0000',
    '\uD800',
  ),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.string({ maxLength: 8, unit: 'binary' }),
);
const values = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, { weight: 3, arbitrary: scalars }, tie('list'), tie('map')),
  list: fc.array(tie('value'), { maxLength: 3 }),
  map: fc.array(fc.tuple(keys, tie('value')), { maxLength: 6 }).map((pairs) => Object.fromEntries(pairs)),
})).map;

/** JSON is YAML except for its keys. Also without quotes, so that scalars are resolved. */
const plain = (value: unknown): string =>
  JSON.stringify(value)
    .replaceAll(/"([\w$/:+.-]{1,20})"/g, '$1')
    .replaceAll(/([:,])(?=\S)/g, '$1 ');

const yamlBits = fc.constantFrom(
  'a',
  ':',
  ': ',
  '- ',
  '\n',
  '\n  ',
  '  ',
  '{',
  '}',
  '[',
  ']',
  ',',
  '"',
  "'",
  '|',
  '>',
  '#',
  ' #',
  '&a ',
  '*a',
  '!',
  '!!int ',
  '<<: ',
  '? ',
  '---\n',
  '...\n',
  '%',
  '\t',
  '\r\n',
  '~',
  '1',
  'service',
  'resources',
  'envs',
  '\\',
  '\\x0',
  '@',
  '`',
  '\u0085',
  '\uFEFF',
  'é',
  '𝄞',
);

test('any text throws only the documented errors', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => documented.has(codeOf(text, given))));
});

test('any sequence of YAML fragments throws only the documented errors', () => {
  fc.assert(
    fc.property(fc.array(yamlBits, { maxLength: 40 }), (bits) => documented.has(codeOf(bits.join(''), given))),
    { numRuns: 300 },
  );
});

test('known fields with any values throw only the documented errors', () => {
  const text = values.chain((value) => fc.constantFrom(JSON.stringify(value), plain(value)));
  fc.assert(
    fc.property(text, (source) => documented.has(codeOf(source, given))),
    { numRuns: 300 },
  );
});

test('every rejection has problems with a valid position and a caret', () => {
  const property = fc.property(values, (value) => {
    const source = plain(value);
    if (codeOf(source, given) === undefined) return true;
    const { problems } = refusalOf(source, given);
    const lines = source.split('\n');
    return (
      problems.length > 0 &&
      problems.every(({ line, column, excerpt, message }) => {
        const text = lines[line - 1];
        return (
          text !== undefined &&
          column >= 1 &&
          column <= text.length + 1 &&
          message !== '' &&
          excerpt?.split('\n').at(-1)?.endsWith('^') === true
        );
      })
    );
  });
  fc.assert(property, { numRuns: 150 });
});

test('no rejection shows the value of a secret', () => {
  const property = fc.property(values, (value) => {
    const source = plain(value);
    if (codeOf(source, given) === undefined) return true;
    const { message, hint, problems } = refusalOf(source, given);
    return !JSON.stringify([message, hint, problems]).includes('hunter2hunter2');
  });
  fc.assert(property, { numRuns: 150 });
});

test('no document changes Object.prototype', () => {
  const before = Object.getOwnPropertyNames(Object.prototype).join();
  const property = fc.property(values, (value) => {
    codeOf(JSON.stringify(value), given);
    return Object.getOwnPropertyNames(Object.prototype).join() === before && !('polluted' in {});
  });
  fc.assert(property);
});

test('JSON is read as the same data', () => {
  const leaf = fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null));
  const key = fc.string({ unit: 'grapheme' }).filter((text) => text !== '__proto__');
  const data = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('value')), tie('map')),
    map: fc.array(fc.tuple(key, tie('value'))).map((pairs) => Object.fromEntries(pairs)),
  })).map;
  const property = fc.property(data, (value) => {
    const { root } = composeYaml(new SourceText(JSON.stringify({ value }), 'x'));
    return root !== undefined && isDeepStrictEqual(toValue(root), { value });
  });
  fc.assert(property);
});
