import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';
import { expect, test } from 'vitest';
import { printYaml } from './print-yaml.ts';

test('documents follow each other after a comment', () => {
  expect(printYaml([{ kind: 'A', ports: [1] }, { kind: 'B' }], ['Made by svc.', '', 'Apply it.'])).toBe(
    '# Made by svc.\n#\n# Apply it.\n---\nkind: A\nports:\n  - 1\n---\nkind: B\n',
  );
});

test('printed text is read back unchanged, even when it looks like another type', () => {
  const one = { on: 'true', port: '30001', mode: '0440', script: 'a\n  b\n', long: 'x '.repeat(200), empty: {}, none: [] };
  expect(parseAllDocuments(printYaml([one, one])).map((document) => document.toJS())).toEqual([one, one]);
});

test('objects with any texts are read back unchanged', () => {
  const objects = fc.dictionary(fc.string({ minLength: 1 }), fc.oneof(fc.string(), fc.integer(), fc.boolean()));
  fc.assert(
    fc.property(objects, (object) => {
      const [read] = parseAllDocuments(printYaml([object]));
      expect(JSON.stringify(read?.toJS())).toBe(JSON.stringify(object));
    }),
  );
});
