import { defineConfig } from 'vitest/config';

const processTests = [
  'src/{balancer,buckets,catalog,kubernetes,providers,remote,controller,store,api,cli,launcher,provision,node,shared,spec}/**/*.process.test.ts',
  'test/architecture/**/*.test.ts',
  'test/fuzz/**/*.test.ts',
];

/** Places that are not this machine, and what they are tried against: minutes of it, so it runs by itself. */
const placeTests = [
  'src/providers/{aws,ssh}/**/*.process.test.ts',
  'src/remote/ssh/**/*.process.test.ts',
  'src/buckets/**/*.process.test.ts',
  'src/provision/files/**/*.process.test.ts',
  'test/fakes/**/*.test.ts',
];

// Set by .ci/run, which adds up what the suites report.
const report = process.env['SVC_TEST_REPORT'];

export default defineConfig({
  test: {
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
    projects: [
      {
        // Pure code and code over fakes: no processes, no real time, so isolation would only cost time.
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/support/**/*.test.ts', 'bench/**/*.test.ts'],
          exclude: [...processTests, ...placeTests],
          pool: 'threads',
          isolate: false,
          // Simulations of a day of service: seconds of work on a busy machine.
          testTimeout: 30_000,
          // Runs by themselves first: pure tests are quick and say most.
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Real sockets, files and child processes.
        test: {
          name: 'process',
          include: processTests,
          exclude: placeTests,
          pool: 'forks',
          testTimeout: 30_000,
          hookTimeout: 30_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'places',
          include: placeTests,
          pool: 'forks',
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 6 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 60_000,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Machines with a real sshd, made by test/testbed/hosts: as root only.
        test: {
          name: 'hosts',
          include: ['test/hosts/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 60_000,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 4 },
        },
      },
      {
        // Real clusters, made by test/testbed/kubernetes: with nodes as root only. What they are made from is built before, once.
        test: {
          name: 'kubernetes',
          include: ['test/kubernetes/**/*.test.ts'],
          globalSetup: ['test/testbed/kubernetes/prepare.ts'],
          pool: 'forks',
          testTimeout: 180_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 7 },
        },
      },
      {
        // With somebody's own account at a real cloud: costs money, and is never run unasked.
        test: {
          name: 'live',
          include: ['test/live/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 5 },
        },
      },
      {
        // Minutes of load before replicas that misbehave. One file at a time: figures are taken.
        test: {
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 60_000,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
