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

/** The check as a function, for `expect`. */
const refuse = (existing: ExistingController, isRequested: boolean) => (): void => refuseOtherKind(existing, configured(isRequested));

test('a controller of the configured kind is accepted', () => {
  expect(refuse({ kind: 'none' }, true)).not.toThrow();
  expect(refuse({ kind: 'local' }, false)).not.toThrow();
  expect(refuse({ kind: 'remote', record: machine }, false)).not.toThrow();
  expect(refuse({ kind: 'remote', record: inCluster }, true)).not.toThrow();
});

test('high availability for an existing local controller is refused with a remedy', () => {
  expect(problemOf(() => refuseOtherKind({ kind: 'local' }, configured(true)))).toMatchObject({
    code: 'SVC_CONTROLLER_KIND',
    message: expect.stringContaining('there is a controller on this machine already'),
    hint: expect.stringContaining('svc controller stop'),
  });
});

test('high availability for an existing remote controller is refused with a remedy', () => {
  expect(problemOf(() => refuseOtherKind({ kind: 'remote', record: machine }, configured(true)))).toMatchObject({
    code: 'SVC_CONTROLLER_KIND',
    hint: expect.stringContaining('svc controller down'),
  });
});

test('turning off high availability of an existing controller is refused', () => {
  expect(problemOf(() => refuseOtherKind({ kind: 'remote', record: inCluster }, configured(false)))).toMatchObject({
    code: 'SVC_CONTROLLER_KIND',
    message: 'The controller lives in the cluster prod (namespace serving), and high_availability is not true in config.yaml any more.',
  });
});
