import { expect, test } from 'vitest';
import { readProblemCases } from '../../test/support/problem-cases.ts';
import { problemsOf } from '../../test/support/task-text.ts';

const cases = readProblemCases(String.raw`
# an unknown field
▸runn: x
=> unknown field 'runn' (Did you mean 'run'?)

# a field one level too high
▸replicas: 2
=> unknown field 'replicas' (It belongs below 'service:'.)

# a field like no other
resources: {ports: 80}
service: {tls: {keyfile: a, certfile: b, ▸zebra: 1}}
=> service.tls: unknown field 'zebra' (Known here: keyfile, certfile, client_ca, min_version, ciphers.)

# a number for text
name: ▸5
=> name: expected text, found the number 5 (Put it in quotes to make it text: "5")

# a boolean for text
run: ▸yes
=> run: expected text, found yes (Put it in quotes to make it text: "yes")

# text for a number
num_nodes: ▸two
=> num_nodes: expected a whole number, found text 'two'

# a fraction for a whole number
num_nodes: ▸1.5
=> num_nodes: expected a whole number, found the number 1.5

# no nodes
num_nodes: ▸0
=> num_nodes: must be at least 1, found the number 0

# a list for a map
service: ▸[1]
=> service: expected a map of fields, found a list

# an empty name
name: ▸""
=> name: must not be empty, found empty text

# a deep null
resources: {ports: 80}
service: {readiness_probe: {path: /, ▸timeout_seconds: }}
=> service.readiness_probe.timeout_seconds: expected a number, found nothing

# a bad variable name
envs: {▸1A: x}
=> envs: '1A' is not the name of a variable: letters, digits and '_', not beginning with a digit

# secrets that are no references
secrets: [▸abc]
=> secrets[0]: must be secrets:NAME

# an unknown bucket
file_mounts: {/a: ▸s33://b}
=> file_mounts./a: unknown kind of address 's33://' (Did you mean 's3://'?)

# an address as target
file_mounts: {▸"s3://a": ./b}
=> file_mounts: the target must be a path on the machine, not an address

# one target twice
file_mounts: {/a: ./b, ▸/a/: ./c}
=> file_mounts: two mounts have this target

# a mount without a source
file_mounts: {/a: ▸{store: s3}}
=> file_mounts./a: needs a source, or the name of a bucket (Write name: BUCKET, or source: s3://BUCKET/PATH.)

# a mount mode
file_mounts: {/a: {name: b, mode: ▸link}}
=> file_mounts./a.mode: must be one of mount, copy or mount_cached, found text 'link'

# a git workdir without url
workdir: ▸{ref: main}
=> workdir: needs 'url'
`);

test.each(cases)('rejected: $about', ({ source, problems }) => {
  expect(problemsOf(source)).toEqual(problems);
});
