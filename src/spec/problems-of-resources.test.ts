import { expect, test } from 'vitest';
import { readProblemCases } from '../../test/support/problem-cases.ts';
import { problemsOf } from '../../test/support/task-text.ts';

const cases = readProblemCases(String.raw`
# cpus in words
resources: {cpus: ▸four}
=> resources.cpus: must be a number greater than 0, or such a number with + for "at least" (Write for instance: cpus: 4 or cpus: 4+)

# no cpus
resources: {cpus: ▸0+}
=> resources.cpus: must be a number greater than 0, or such a number with + for "at least" (Write for instance: cpus: 4 or cpus: 4+)

# memory in GiB
resources: {memory: ▸16GiB}
=> resources.memory: the unit is not known (Write GB instead of GiB; a GB counts 1024 MB here.)

# negative memory
resources: {memory: ▸-1}
=> resources.memory: must be a size greater than 0, or such a size with + for "at least" (Write for instance: memory: 16, memory: 16+ or memory: 512MB)

# a count in words
resources: {accelerators: ▸T4:x}
=> resources.accelerators: must be NAME or NAME:COUNT (Write for instance: accelerators: L4 or accelerators: A100-80GB:8)

# no accelerators of a kind
resources: {accelerators: ▸"T4:0"}
=> resources.accelerators: the count must be greater than 0 (Leave accelerators out when none is needed.)

# fewer than none
resources: {accelerators: ▸{T4: -1}}
=> resources.accelerators: the count must be greater than 0 (Leave accelerators out when none is needed.)

# an accelerator without a name
resources: {accelerators: ▸":1"}
=> resources.accelerators: must be NAME or NAME:COUNT (Write for instance: accelerators: L4 or accelerators: A100-80GB:8)

# an empty list
resources: {accelerators: ▸[]}
=> resources.accelerators: must not be empty (Leave accelerators out when none is needed.)

# an empty map
resources: {gpus: ▸{}}
=> resources.gpus: must not be empty (Leave accelerators out when none is needed.)

# both names
resources: {accelerators: T4, ▸gpus: T4}
=> resources: accelerators and gpus cannot both be given (They are two names of one field; keep one.)

# several in an alternative
resources: {any_of: [{accelerators: ▸{T4: 1, L4: 1}}]}
=> resources.any_of[0].accelerators: only one accelerator can stand in an entry of any_of (Make one entry for each.)

# a list with any_of
resources: {accelerators: ▸[T4, L4], any_of: [{cpus: 1}]}
=> resources.accelerators: a list of accelerators is an order of preference, which any_of does not keep (Use ordered instead of any_of, or a map of accelerators.)

# both lists
resources: {any_of: [{cpus: 1}], ▸ordered: [{cpus: 2}]}
=> resources: any_of and ordered cannot both be given (Keep one of the two.)

# a list in a list
resources: {any_of: [{▸any_of: [{cpus: 1}]}]}
=> resources.any_of[0]: unknown field 'any_of'

# infra and cloud
resources: {infra: ▸aws, region: us-east-1}
=> resources.infra: infra and region cannot both be given (Write all of it as infra: CLOUD/REGION/ZONE.)

# a bad infra
resources: {infra: ▸aws/a/b/c}
=> resources.infra: must be CLOUD, CLOUD/REGION or CLOUD/REGION/ZONE; * stands for any (Write for instance: infra: aws/us-east-1 or infra: k8s/my-context)

# port 0
resources: {ports: ▸0}
=> resources.ports: ports are numbers from 1 to 65535

# a backward range
resources: {ports: ▸90-80}
=> resources.ports: must be a port, or a range FROM-TO with FROM not greater than TO (Write for instance: ports: 8080 or ports: 8000-8010)

# one bad port of several
resources: {ports: [80, ▸abc]}
=> resources.ports[1]: must be a port, or a range FROM-TO with FROM not greater than TO (Write for instance: ports: 8080 or ports: 8000-8010)

# a negative disk
resources: {disk_size: ▸-5}
=> resources.disk_size: must be a size greater than 0 (Write GB, or for instance 100GB or 1TB.)

# spot in words
resources: {use_spot: ▸"yes"}
=> resources.use_spot: expected true or false, found text 'yes'

# an unknown tier
resources: {disk_tier: ▸fast}
=> resources.disk_tier: must be one of low, medium, high, ultra or best, found text 'fast'

# a label that is a number
resources: {labels: {a: ▸1}}
=> resources.labels.a: expected text, found the number 1 (Put it in quotes to make it text: "1")

# no cost
resources: {max_hourly_cost: ▸0}
=> resources.max_hourly_cost: must be greater than 0, found the number 0

# job_recovery with a service
resources: {ports: 80, job_recovery: ▸failover}
service: {}
=> resources.job_recovery: not for services, which replace their replicas by themselves (Remove job_recovery.)
`);

test.each(cases)('rejected: $about', ({ source, problems }) => {
  expect(problemsOf(source)).toEqual(problems);
});

// A pattern that backtracks over such a text for each character would take hours: the test would reach its time limit.
test.for([
  ['memory', `1${' '.repeat(400_000)}x`],
  ['memory', `${'1'.repeat(400_000)}x`],
  ['cpus', '1.'.repeat(200_000)],
  ['accelerators', 'A:'.repeat(200_000)],
  ['infra', `${'a/'.repeat(200_000)} `],
  ['infra', '*'.repeat(400_000)],
  ['disk_size', `${'9'.repeat(400_000)}GB !`],
  ['ports', `${'1'.repeat(200_000)}-${'1'.repeat(200_000)}`],
] as const)('a very long text that is almost a valid %s is rejected', ([field, text]) => {
  expect(problemsOf(`resources:\n  ${field}: "${text}"\n`)).toEqual([expect.stringContaining(`resources.${field}: must`)]);
});
