import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const processTests = [
  'src/{balancer,buckets,catalog,kubernetes,providers,remote,controller,store,api,cli,launcher,provision,node,shared,spec}/**/*.process.test.ts',
  'test/architecture/**/*.test.ts',
  'test/fuzz/**/*.test.ts',
];

/** Tests of remote providers against emulations. They take minutes, so they run separately. */
const providerTests = [
  'src/providers/{aws,ssh}/**/*.process.test.ts',
  'src/remote/ssh/**/*.process.test.ts',
  'src/buckets/**/*.process.test.ts',
  'src/provision/files/**/*.process.test.ts',
  'test/fakes/**/*.test.ts',
];

// Set by .ci/run, which sums the reports of the suites.
const report = process.env['SVC_TEST_REPORT'];

// Most tests of `process` start programs of src/. The compile cache saves more than half of the processor time of each
// start. Not below /tmp, where it would appear in the folders of replicas.
const env = { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/svc-test-compile') };

// A passing test waits for conditions, not for these limits. They allow for a machine that is many times slower than
// usual.
const limits = { testTimeout: 1_200_000, hookTimeout: 300_000 };

const jsonReporter = (outputFile: string): ['json', { outputFile: string }] => ['json', { outputFile }];

export default defineConfig({
  test: {
    // CI keeps only the message of a failure, so it must show the actual value.
    chaiConfig: { truncateThreshold: 2_000 },
    reporters: ['default', './scripts/skipped-tests.ts', ...(report === undefined ? [] : [jsonReporter(report)])],
    projects: [
      {
        // Pure code and code over fakes: no processes and no real time, so isolation would only cost time.
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/support/**/*.test.ts', 'bench/**/*.test.ts'],
          exclude: [...processTests, ...providerTests],
          pool: 'threads',
          isolate: false,
          ...limits,
          // Runs alone first: pure tests are quick and most specific.
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Real sockets, files and child processes.
        test: {
          name: 'process',
          include: processTests,
          exclude: providerTests,
          globalSetup: ['test/support/program-bundle.ts'],
          pool: 'forks',
          env,
          // More than two files run in parallel on two cores, because most of them wait most of the time.
          ...limits,
          maxWorkers: 6,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'providers',
          include: providerTests,
          pool: 'forks',
          ...limits,
          maxWorkers: 2,
          sequence: { groupOrder: 6 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/support/program-bundle.ts'],
          pool: 'forks',
          ...limits,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // The whole control loop over the fake cloud in virtual time: one file per core, each with half of the seeds.
        test: {
          name: 'simulation',
          include: ['test/simulation/**/*.test.ts'],
          experimental: { viteModuleRunner: false },
          pool: 'forks',
          ...limits,
          maxWorkers: 2,
          sequence: { groupOrder: 8 },
        },
      },
      {
        // Machines with a real sshd, made by test/testbed/hosts: as root only.
        test: {
          name: 'hosts',
          include: ['test/hosts/**/*.test.ts'],
          globalSetup: ['test/support/program-bundle.ts'],
          pool: 'forks',
          ...limits,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 4 },
        },
      },
      {
        // Real Kubernetes clusters, made by test/testbed/kubernetes; those with nodes need root. The global setup
        // builds their programs once.
        test: {
          name: 'kubernetes',
          include: ['test/kubernetes/**/*.test.ts'],
          globalSetup: ['test/testbed/kubernetes/prepare.ts'],
          pool: 'forks',
          ...limits,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 7 },
        },
      },
      {
        // Uses the developer's own account at a real cloud and costs money, so it runs only on request.
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
        // Minutes of load before faulty replicas. Files run one at a time, because they measure.
        test: {
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          globalSetup: ['test/support/program-bundle.ts'],
          pool: 'forks',
          ...limits,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
