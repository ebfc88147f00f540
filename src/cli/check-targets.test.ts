import { expect, test } from 'vitest';
import { defaultConfig, type Config, type LocalRegion, type SshPool } from '../domain/config.ts';
import { namespaceOf, narrowTo, readCheckTargets, type CheckSettings } from './check-targets.ts';

const aHost = (host: string) => ({
  host,
  user: undefined,
  port: undefined,
  identityFile: undefined,
  proxyJump: undefined,
  hourlyUsd: 0,
});
const sshPools: readonly SshPool[] = [
  { name: 'lab', file: '/pools', hosts: [aHost('10.0.0.1'), aHost('10.0.0.2')] },
  { name: 'rack', file: '/pools', hosts: [aHost('10.0.1.1')] },
];
const config: Config = {
  ...defaultConfig,
  kubernetes: { ...defaultConfig.kubernetes, namespace: 'serving', contexts: { prod: { namespace: 'team' } } },
};
const settings: CheckSettings = { config, sshPools };
const contexts = ['prod', 'arn:aws:eks:us-east-1:1:cluster/mine'];

/** The settings that a provider gets when only this part is checked. */
const narrowed = (word: string, names: readonly string[] = contexts, from: CheckSettings = settings): CheckSettings => {
  const [target = { provider: '', parts: [] }] = readCheckTargets([word]);
  return narrowTo(target, from, names);
};

test.for([
  [['k8s'], [{ provider: 'kubernetes', parts: [] }]],
  [
    ['K8S/prod', 'aws'],
    [
      { provider: 'kubernetes', parts: ['prod'] },
      { provider: 'aws', parts: [] },
    ],
  ],
  [
    ['ssh/lab', 'local', 'ssh/rack', 'ssh/lab'],
    [
      { provider: 'ssh', parts: ['lab', 'rack'] },
      { provider: 'local', parts: [] },
    ],
  ],
  [['k8s/prod', 'kubernetes'], [{ provider: 'kubernetes', parts: [] }]],
  [['kubernetes', 'k8s/prod'], [{ provider: 'kubernetes', parts: [] }]],
  [['k8s/arn:aws:eks:us-east-1:1:cluster/mine'], [{ provider: 'kubernetes', parts: ['arn:aws:eks:us-east-1:1:cluster/mine'] }]],
] as const)('%j', ([words, targets]) => {
  expect(readCheckTargets(words)).toEqual(targets);
});

test('naming a context restricts the check to it', () => {
  expect(narrowed('k8s/prod').config.kubernetes).toEqual({ ...config.kubernetes, allowedContexts: ['prod'] });
  expect(narrowed('k8s').config).toBe(config);
});

test.for(['ssh/rack', 'ssh/10.0.1.1', 'ssh/rack/10.0.1.1'])('%s selects the only host of its pool', (word) => {
  expect(narrowed(word).sshPools).toEqual([sshPools[1]]);
});

test('naming a region restricts the check to it', () => {
  expect(narrowed('aws/us-east-2', ['us-east-1', 'us-east-2']).config.aws.regions).toEqual(['us-east-2']);
  const regions = ['one', 'two'].map((name): LocalRegion => ({ name, state: 'up', refuseWith: 'capacity', maxMachines: undefined }));
  const several = { ...settings, config: { ...config, local: { ...config.local, regions } } };
  expect(narrowed('local/two', [], several).config.local.regions.map(({ name }) => name)).toEqual(['two']);
});

test.for([
  ['k8s/prd', "Provider 'kubernetes' has no context 'prd' (known: prod, arn:aws:eks:us-east-1:1:cluster/mine).", 'kubernetes/prod'],
  ['ssh/lba', "Provider 'ssh' has no pool or host 'lba' (known: lab, lab/10.0.0.1, lab/10.0.0.2, rack, rack/10.0.1.1).", 'ssh/lab'],
  ['local/locl', "Provider 'local' has no region 'locl' (known: local).", 'local/local'],
] as const)('%s is refused with the known names and a suggestion', ([word, message, meant]) => {
  expect(() => narrowed(word)).toThrow(
    expect.objectContaining({ code: 'SVC_NO_PLACE', message, hint: expect.stringContaining(`'${meant}'?`) }),
  );
});

test('a context outside kubernetes.allowed_contexts is refused', () => {
  const limited = { ...settings, config: { ...config, kubernetes: { ...config.kubernetes, allowedContexts: ['prod'] } } };
  expect(() => narrowed('k8s/dev', ['prod', 'dev'], limited)).toThrow(
    "Provider 'kubernetes' has no context 'dev' that kubernetes.allowed_contexts allows (known: prod).",
  );
});

test('without any context, the error says that there is none', () => {
  expect(() => narrowed('k8s/prod', [])).toThrow("Provider 'kubernetes' has no context 'prod' (there is none).");
});

test('the namespace of a role comes from the named context', () => {
  expect(namespaceOf({ provider: 'kubernetes', parts: ['prod'] }, config)).toBe('team');
  expect(namespaceOf({ provider: 'kubernetes', parts: [] }, config)).toBe('serving');
});
