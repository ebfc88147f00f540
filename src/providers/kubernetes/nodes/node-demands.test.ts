import { expect, test } from 'vitest';
import { anOffer } from '../../../../test/support/builders.ts';
import { defaultConfig } from '../../../domain/config.ts';
import { kubernetesContextConfig } from '../../../domain/kubernetes/kubernetes-context.ts';
import { nodeDemands, nodeTerms } from './node-demands.ts';
import { nodeFacts } from './node-facts.ts';

const plain = kubernetesContextConfig(defaultConfig.kubernetes, 'a');
const gpuName = 'karpenter.k8s.aws/instance-gpu-name';
const gpuMemory = 'karpenter.k8s.aws/instance-gpu-memory';

const node = (labels: Readonly<Record<string, string>>) => ({
  metadata: { name: 'n', uid: 'n', resourceVersion: '1', labels },
  status: { allocatable: { 'nvidia.com/gpu': '8' } },
});

function termsFor(name: string, labels: readonly Readonly<Record<string, string>>[], autoscaler?: string) {
  const offer = anOffer({ provider: 'kubernetes', region: 'a', accelerator: { name, count: 1 } });
  const config = { ...plain, autoscaler };
  return nodeTerms(nodeDemands(offer, config, nodeFacts(labels.map(node), [])));
}

const isIn = (key: string, ...values: readonly string[]) => ({ key, operator: 'In', values });

test('GPUs with the same Amazon label are distinguished by memory, with or without nodes', () => {
  const seen = [
    { [gpuName]: 'a100', [gpuMemory]: '40960' },
    { [gpuName]: 'a100', [gpuMemory]: '81920' },
    { [gpuName]: 'h100', [gpuMemory]: '81920' },
  ];
  expect(nodeFacts(seen.map(node), []).map(({ gpu }) => gpu?.name)).toEqual(['A100', 'A100-80GB', 'H100']);
  for (const nodes of [seen, []]) {
    expect(termsFor('A100', nodes, 'karpenter')).toEqual([{ matchExpressions: [isIn(gpuName, 'a100'), isIn(gpuMemory, '40960')] }]);
    expect(termsFor('A100-80GB', nodes, 'karpenter')).toEqual([{ matchExpressions: [isIn(gpuName, 'a100'), isIn(gpuMemory, '81920')] }]);
    expect(termsFor('H100', nodes, 'karpenter')).toEqual([{ matchExpressions: [isIn(gpuName, 'h100')] }]);
  }
});

test('a node with GPU parts does not count as a node of that GPU', () => {
  const product = 'nvidia.com/gpu.product';
  const part = 'NVIDIA-H100-80GB-HBM3-MIG-1g.10gb';
  const nodes = [{ [gpuName]: 'h100' }, { [gpuName]: 'h100', [product]: part }];
  expect(nodeFacts(nodes.map(node), []).map(({ gpu }) => gpu?.name)).toEqual(['H100', 'H100-MIG-1g.10gb']);
  expect(termsFor('H100', nodes)).toEqual([
    { matchExpressions: [isIn(gpuName, 'h100'), { key: product, operator: 'NotIn', values: [part] }] },
  ]);
  expect(termsFor('H100-MIG-1g.10gb', nodes)).toEqual([{ matchExpressions: [isIn(product, part)] }]);
});

test('with any autoscaler, GPU nodes are requested by every label they may get', () => {
  const terms = JSON.stringify(termsFor('L4', [], 'generic'));
  for (const one of [
    isIn('svc.dev/accelerator', 'L4', 'l4'),
    isIn('skypilot.co/accelerator', 'l4'),
    isIn('cloud.google.com/gke-accelerator', 'nvidia-l4'),
  ])
    expect(terms).toContain(JSON.stringify(one));
  expect(termsFor('L4', [], 'coreweave')).toEqual([{ matchExpressions: [isIn('gpu.nvidia.com/class', 'L4')] }]);
  expect(termsFor('H200', [], 'nebius')).toEqual([{ matchExpressions: [isIn('nebius.com/gpu-name', 'H200')] }]);
  expect(termsFor('Radeon Pro V520', [], 'karpenter')).toEqual([{ matchExpressions: [isIn(gpuName, 'radeon-pro-v520')] }]);
});
