import { expect, test } from 'vitest';
import { serviceState, type ServiceFacts } from './service-state.ts';

const facts = (changes: Partial<ServiceFacts>): ServiceFacts => ({
  replicas: [],
  target: 0,
  initialised: true,
  shuttingDown: false,
  cleanupFailed: false,
  processesFailed: false,
  gaveUp: false,
  ...changes,
});

test.each<[string, Partial<ServiceFacts>, string]>([
  ['before the first pass', { initialised: false }, 'CONTROLLER_INIT'],
  ['one ready among failed ones', { replicas: ['FAILED', 'READY', 'STARTING'] }, 'READY'],
  ['some starting', { replicas: ['STARTING', 'FAILED'] }, 'REPLICA_INIT'],
  ['scaled to zero after an old crash', { replicas: ['FAILED', 'TERMINATED'] }, 'NO_REPLICA'],
  ['failed ones before the next launch', { replicas: ['FAILED'], target: 1 }, 'REPLICA_INIT'],
  ['none at all', {}, 'NO_REPLICA'],
  ['only ended ones', { replicas: ['TERMINATED', 'PREEMPTED'] }, 'NO_REPLICA'],
  ['gave up', { replicas: ['FAILED'], target: 2, gaveUp: true }, 'FAILED'],
  ['a ready one outweighs having given up', { replicas: ['READY'], gaveUp: true }, 'READY'],
  ['shutting down', { replicas: ['READY'], shuttingDown: true }, 'SHUTTING_DOWN'],
  ['failed cleanup', { shuttingDown: true, cleanupFailed: true }, 'FAILED_CLEANUP'],
  ['its processes keep dying', { replicas: ['READY'], processesFailed: true }, 'CONTROLLER_FAILED'],
])('%s: %j is %s', (_name, changes, state) => {
  expect(serviceState(facts(changes))).toBe(state);
});
