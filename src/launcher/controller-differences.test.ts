import { expect, test } from 'vitest';
import { aControllerRecord, someResources } from '../../test/support/builders.ts';
import { defaultConfig, type Config, type ControllerConfig } from '../domain/config.ts';
import type { Resources } from '../domain/task.ts';
import { remoteControllerDifferences, localControllerDifferences } from './controller-differences.ts';
import type { ControllerRecord } from './controller-record.ts';
import { requestedResourcesOf } from './remote-controller.ts';

const configured = (controller: Partial<ControllerConfig>): Config => ({
  ...defaultConfig,
  serve: { controller: { ...defaultConfig.serve.controller, ...controller } },
});

const asking = (...choices: readonly Partial<Resources>[]): Config =>
  configured({ resources: { order: 'any', choices: choices.map((one) => someResources(one)) } });

const recorded = (config: Config): ControllerRecord =>
  aControllerRecord({
    machine: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 },
    machineId: 'us-east-2/i-1',
    program: 'abc',
    boot: 'systemd',
    socket: '/run/controller.sock',
    requestedResources: requestedResourcesOf(config),
  });

const what = (config: Config, before: Config): readonly string[] =>
  remoteControllerDifferences(config, recorded(before)).map((difference) => difference.what);

test('unchanged resources give no difference', () => {
  expect(what(asking({ cloud: 'aws' }), asking({ cloud: 'aws' }))).toEqual([]);
  expect(what(defaultConfig, defaultConfig)).toEqual([]);
});

test('changed fields are named by their YAML keys', () => {
  const before = asking({ cloud: 'aws', region: 'us-east-1', cpus: { value: 2, atLeast: true } });
  const now = asking({ cloud: 'aws', region: 'us-east-2', cpus: { value: 8, atLeast: true }, diskSizeGb: 500 });
  expect(remoteControllerDifferences(now, recorded(before))).toEqual([
    {
      what: 'serve.controller.resources (infra, cpus, disk_size) has changed since the controller got its machine, which stays as it is.',
      remedy: expect.stringContaining('svc controller down'),
    },
  ]);
});

test('with several alternatives, or none, the difference names no fields', () => {
  const text = 'serve.controller.resources has changed since the controller got its machine, which stays as it is.';
  expect(what(asking({ cloud: 'aws' }, { cloud: 'kubernetes' }), asking({ cloud: 'aws' }))).toEqual([text]);
  expect(what(asking({ cloud: 'aws' }), defaultConfig)).toEqual([text]);
});

test('high availability is the only difference reported for a single-machine controller', async () => {
  const lasting = configured({ highAvailability: true });
  expect(what(lasting, asking({ cloud: 'aws' }))).toEqual([
    'serve.controller.high_availability is true, and there is a controller on another machine already, which does not survive its machine.',
  ]);
  expect(await localControllerDifferences(lasting)).toEqual([
    {
      what: 'serve.controller.high_availability is true, and there is a controller on this machine already, which does not survive its machine.',
      remedy: expect.stringContaining('svc controller stop'),
    },
  ]);
});

test('a local controller differs from resources that request a remote machine', async () => {
  expect(await localControllerDifferences(asking({ cloud: 'local' }))).toEqual([]);
  expect(await localControllerDifferences(defaultConfig)).toEqual([]);
  expect(await localControllerDifferences(asking({ cloud: 'aws' }))).toEqual([
    {
      what: 'serve.controller.resources asks for another machine, and the controller runs on this one.',
      remedy: expect.stringContaining('svc controller stop'),
    },
  ]);
});
