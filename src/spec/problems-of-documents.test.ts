import { expect, test } from 'vitest';
import { readProblemCases } from '../../test/support/problem-cases.ts';
import { problemsOf, refusalOf } from '../../test/support/task-text.ts';

const cases = readProblemCases(String.raw`
# a file of comments
▸# nothing
=> the file is empty

# text instead of a map
▸hello
=> expected a map of fields such as resources, run and service (Is it the right file?)

# two documents
run: a
▸---
run: b
=> the file holds several YAML documents (separated by ---), one is expected (Keep one task per file.)

# an open quote
run: ▸"a
setup: b
=> the closing quote is missing

# an open bracket
envs: {A: [1, 2
▸run: x
=> the closing ] or } is missing, or this line is not indented far enough

# a colon in text
run: ▸a: b
=> a second ': ' on one line (Put the text in quotes if it is meant to be text: '…'.)

# NUL in quotes
run: ▸"a\0b"
=> text cannot hold the NUL character

# an unknown alias
run: ▸*x
=> there is no anchor &x above this alias

# an alias inside itself
envs: &a {A: ▸*a}
=> the alias *a stands inside the very value it names

# a merge of text
envs: {▸<<: a}
=> a merge key (<<) needs a map or a list of maps (Write: <<: *name)

# a tag
run: !python/name:os.system ▸x
=> the tag '!python/name:os.system' is not supported (Leave the tag out.)

# a tag that does not fit
num_nodes: !!int ▸two
=> the value does not fit its tag !!int

# a map as a key
? ▸{a: b}
: c
=> a list or map cannot be a key

# __proto__
envs: {▸__proto__: x}
=> the key '__proto__' is not allowed
`);

test.each(cases)('rejected: $about', ({ source, problems }) => {
  expect(problemsOf(source)).toEqual(problems);
});

test.each(['', '\n\n', '# nothing\n', '---\n'])('the hint for an empty file (%j) suggests its content', (source) => {
  expect(refusalOf(source).hint).toBe(
    'Write a task into it, for instance: run: echo hello; examples/hello/service.yaml is a whole service.',
  );
});
