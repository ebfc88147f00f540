import { expect, test } from 'vitest';
import { aControllerRecord } from '../../../test/support/builders.ts';
import { problemOf } from '../../../test/support/problem-of.ts';
import { defaultConfig, type Config } from '../../domain/config.ts';
import { refuseOtherKind, type ExistingController } from './kind.ts';

const configured = (highAvailability: boolean): Config => ({
  ...defaultConfig,
  serve: { controller: { ...defaultConfig.serve.controller, highAvailability } },
});

const machine = aControllerRecord();
const inCluster = aControllerRecord({ cluster: { context: 'prod', namespace: 'serving' } });

/** The check as a function to be called. */
const refuse = (existing: ExistingController, isWanted: boolean) => (): void => refuseOtherKind(existing, configured(isWanted));

test('a controller that is as the configuration says is used', () => {
  expect(refuse({ kind: 'none' }, true)).not.toThrow();
  expect(refuse({ kind: 'here' }, false)).not.toThrow();
  expect(refuse({ kind: 'elsewhere', record: machine }, false)).not.toThrow();
  expect(refuse({ kind: 'elsewhere', record: inCluster }, true)).not.toThrow();
});

test('turning it on for a controller on this machine is refused, with what to do', () => {
  expect(problemOf(() => refuseOtherKind({ kind: 'here' }, configured(true)))).toMatchObject({
    code: 'SVC_CONTROLLER_KIND',
    message: expect.stringContaining('there is a controller on this machine already'),
    hint: expect.stringContaining('svc controller stop'),
  });
});

test('turning it on for a controller on another machine is refused, with what to do', () => {
  expect(problemOf(() => refuseOtherKind({ kind: 'elsewhere', record: machine }, configured(true)))).toMatchObject({
    code: 'SVC_CONTROLLER_KIND',
    hint: expect.stringContaining('svc controller down'),
  });
});

test('turning it off is refused as well', () => {
  expect(problemOf(() => refuseOtherKind({ kind: 'elsewhere', record: inCluster }, configured(false)))).toMatchObject({
    code: 'SVC_CONTROLLER_KIND',
    message: 'The controller lives in the cluster prod (namespace serving), and high_availability is not true in config.yaml any more.',
  });
});
