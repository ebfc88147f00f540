import { expect, test } from 'vitest';
import { problemLine } from '../../test/support/task-text.ts';
import { defaultConfig } from '../domain/config.ts';
import { SvcError } from '../shared/errors.ts';
import { parseConfig } from './load-config.ts';

const problemsOf = (text: string): readonly string[] => {
  try {
    parseConfig(text, '/home/me/.svc/config.yaml');
  } catch (error: unknown) {
    if (error instanceof SvcError && error.code === 'SVC_INVALID_CONFIG') return error.problems.map(problemLine);
    throw error;
  }
  return [];
};

test.each(['', '# nothing\n\n', 'serve:\nlocal:\n', '{}\n', 'serve: {controller: {resources: , autostop: }}\n'])(
  '%j gives the defaults',
  (text) => {
    expect(parseConfig(text, 'c')).toEqual(defaultConfig);
  },
);

test('all fields are read', () => {
  const text = `
serve:
  controller:
    resources: {cpus: 4+, infra: gcp}
    high_availability: true
    autostop: {idle_minutes: 30, down: true}
local:
  regions:
    - west
    - {name: east, state: refusing, refuse_with: quota, max_machines: 3}
    - {name: north, state: LOST}
  isolation: userns
  gpus: L4:2
  hourly_price: 1.5
  spot_zones:
    - {name: a, room: 2}
    - {name: b, room: 0, region: north, hourly_price: 0.3, reclaim_after_seconds: 0, rebalance_seconds: 60}
allowed_clouds: [local, K8s, AWS]
`;
  const config = parseConfig(text, 'c');
  expect(config.serve.controller).toMatchObject({
    resources: { order: 'any', choices: [{ cloud: 'gcp', cpus: { value: 4, atLeast: true } }] },
    highAvailability: true,
    autostop: { idleMinutes: 30, down: true },
  });
  expect(config.local).toEqual({
    regions: [
      { name: 'west', state: 'up', refuseWith: 'capacity', maxMachines: undefined },
      { name: 'east', state: 'refusing', refuseWith: 'quota', maxMachines: 3 },
      { name: 'north', state: 'lost', refuseWith: 'capacity', maxMachines: undefined },
    ],
    isolation: 'userns',
    gpus: { name: 'L4', count: 2 },
    spotZones: [
      { name: 'a', region: 'west', room: 2, hourlyUsd: 0, reclaimAfterSeconds: 120, rebalanceSeconds: 0 },
      { name: 'b', region: 'north', room: 0, hourlyUsd: 0.3, reclaimAfterSeconds: 0, rebalanceSeconds: 60 },
    ],
    hourlyUsd: 1.5,
  });
  expect(config.allowedClouds).toEqual(['local', 'kubernetes', 'aws']);
});

test.each([
  ['false', undefined],
  ['true', { idleMinutes: 10, down: false }],
  ['45', { idleMinutes: 45, down: false }],
  ['2h', { idleMinutes: 120, down: false }],
  ['{down: true}', { idleMinutes: 10, down: true }],
])('autostop: %s', (text, expected) => {
  expect(parseConfig(`serve: {controller: {autostop: ${text}}}`, 'c').serve.controller.autostop).toEqual(expected);
});

test.each([
  ['2', { name: 'GPU', count: 2 }],
  ['0', { name: 'GPU', count: 0 }],
  ['A100-80GB', { name: 'A100-80GB', count: 1 }],
])('gpus: %s', (text, expected) => {
  expect(parseConfig(`local: {gpus: ${text}}`, 'c').local.gpus).toEqual(expected);
});

test('all problems are reported at once', () => {
  const text = `
serv: {}
serve:
  controller: {autostop: soon, high_availability: maybe, resources: {infra: aws, cloud: aws}}
local:
  isolation: chroot
  regions: [a, {name: a, state: down}, b c]
  gpus: 80GB
allowed_clouds: []
`;
  expect(problemsOf(text)).toEqual([
    "2:1 unknown field 'serv' (Did you mean 'serve'?)",
    '4:26 serve.controller.autostop: is not a duration (Write minutes, or for instance 10m or 1h.)',
    "4:51 serve.controller.high_availability: expected true or false, found text 'maybe'",
    '4:77 serve.controller.resources.infra: infra and cloud cannot both be given (Write all of it as infra: CLOUD/REGION/ZONE.)',
    "6:14 local.isolation: must be one of auto, root, userns, bwrap, podman, container or none, found text 'chroot' (Did you mean 'root'?)",
    "7:33 local.regions[1].state: must be one of up, refusing or lost, found text 'down'",
    `7:40 local.regions[2]: is not the name of a region: letters, digits, ".", "_" and "-"`,
    '8:9 local.gpus: must be NAME or NAME:COUNT (Write for instance: gpus: L4:2)',
    '9:17 allowed_clouds: must not be empty',
  ]);
});

test.each([
  ['local: {regions: [a, a]}', '1:22 local.regions[1]: two regions have this name'],
  ['local: {spot_zones: [{name: a, room: 1}, {name: a, room: 1}]}', '1:42 local.spot_zones[1]: two zones have this name'],
  [
    'local: {spot_zones: [{name: a, room: 1, region: west}]}',
    '1:49 local.spot_zones[0].region: is not the name of a region in local.regions',
  ],
  ['hello', '1:1 expected a map of fields such as local and serve'],
  ['local: [', '1:9 the closing ] or } is missing, or this line is not indented far enough'],
])('%s is rejected', (text, problem) => {
  expect(problemsOf(text)).toEqual([problem]);
});
