import { expect, test } from 'vitest';
import { readProblemCases } from '../../test/support/problem-cases.ts';
import { problemsOf, refusalOf } from '../../test/support/task-text.ts';

const cases = readProblemCases(String.raw`
# a key below a value
service:
  readiness_probe: /
   ▸replicas: 2
=> this line is indented further than the line above (Begin it after 2 spaces, like 'readiness_probe'; to put it below 'readiness_probe', remove the value there.)

# a key below a value at the left edge
name: x
  ▸workdir: .
=> this line is indented further than the line above (Begin it at the left edge, like 'name'; to put it below 'name', remove the value there.)

# a key below a quoted value and behind a comment
envs:
  A: "x"
  # about B
    ▸B: y
=> this line is indented further than the line above (Begin it after 2 spaces, like 'A'; to put it below 'A', remove the value there.)

# a key below a command
run: python server.py
  ▸--model: x
=> this line is indented further than the line above (Begin it at the left edge, like 'run'; for text of several lines, write | behind 'run:'.)

# several lines that are too deep, only the first reported
service:
  readiness_probe: /
   ▸replicas: 2
   ports: 80
=> this line is indented further than the line above (Begin it after 2 spaces, like 'readiness_probe'; to put it below 'readiness_probe', remove the value there.)

# several positions
service:
  readiness_probe: /
    ▸replicas: 2
resources:
  cpus: 1
   ▸memory: 2
name: ▸a: b
=> this line is indented further than the line above (Begin it after 2 spaces, like 'readiness_probe'; to put it below 'readiness_probe', remove the value there.)
=> this line is indented further than the line above (Begin it after 2 spaces, like 'cpus'; to put it below 'cpus', remove the value there.)
=> a second ': ' on one line (Put the text in quotes if it is meant to be text: '…'.)

# a key between two levels
service:
    readiness_probe: /
  ▸replicas: 2
=> the indentation fits none of the lines above (Begin it after 4 spaces, like 'readiness_probe', or at the left edge, like 'service'.)

# a key to the left of the first one
  service:
    replicas: 1
▸run: x
=> the indentation fits none of the lines above (Begin it after 2 spaces, like 'service'.)

# a key between an item and its keys
resources:
  any_of:
    - cpus: 1
     ▸memory: 2
=> the indentation fits none of the lines above (Begin it after 6 spaces, like 'cpus', or after 2 spaces, like 'any_of'.)

# a key in the position of an item
resources:
  any_of:
    - cpus: 1
    ▸memory: 2
=> a key stands among the items of a list (Begin it after 6 spaces, like 'cpus', to put it into the item above, or begin it with '- '.)

# an item in the position of a key
resources:
  cpus: 1
  ▸- memory: 2
=> an item of a list ('- ') stands among keys (Remove the '- ', or put the list below a key that has no value.)

# an item in the position of a key of the item above
resources:
  any_of:
    - cpus: 1
      ▸- cpus: 2
=> an item of a list ('- ') stands among keys (Begin it after 4 spaces, like the '-' above, to make it the next item.)

# an item between two levels
resources:
  any_of:
    - cpus: 1
   ▸- cpus: 2
=> the indentation fits none of the lines above (Begin it after 4 spaces, like the '-' above.)

# an item below a value
resources:
  ports: "80"
    ▸- 81
=> this line is indented further than the line above (To put a list below 'ports', remove the value there.)

# a line that leaves a text too early
run: |
  echo a
 ▸echo b
name: x
=> this line is indented less than the text of 'run' above (Begin it, and the lines of the text below it, after 2 spaces.)

# a text that is not indented
run: |
▸echo a
echo b: c
=> the text of 'run' must be indented further than 'run' itself (Begin it, and the lines of the text below it, after 2 spaces.)

# a tab, with spaces before it
service:
  replicas: 1
  ▸	ports: 80
=> a tab cannot be used for indentation (Use spaces, two for each level.)

# no space behind a colon
service:
  ▸replicas:2
  ports: 80
=> a space is missing after the ':' (Write: replicas: VALUE)

# an error inside brackets over several lines with free indentation
envs: {
    A: 1,
  B: ▸*x }
=> there is no anchor &x above this alias
`);

test.each(cases)('rejected: $about', ({ source, problems }) => {
  expect(problemsOf(source)).toEqual(problems);
});

test('the excerpt shows the wrongly indented line', () => {
  const [problem] = refusalOf('service:\n  readiness_probe: /\n   replicas: 2\n').problems;
  expect(problem?.excerpt).toBe('2 |   readiness_probe: /\n3 |    replicas: 2\n  |    ^');
});

test.each([
  ['a list at the indentation of its key', 'resources:\n  any_of:\n  - cpus: 1\n  - cpus: 2\n'],
  ['text of several lines that looks like keys', 'run: |\n  a: b\n    c: d\n  - e\nname: x\n'],
  ['indentation of another depth in each section', 'envs:\n    A: b\nresources:\n cpus: 1\n'],
])('%s is accepted even next to a mistake', (_about, source) => {
  expect(problemsOf(`${source}setup: a: b\n`)).toEqual([
    `${source.split('\n').length}:8 a second ': ' on one line (Put the text in quotes if it is meant to be text: '…'.)`,
  ]);
});
