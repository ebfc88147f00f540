import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { aDesign, someSecrets } from '../../../test/support/high-availability.ts';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { defaultConfig } from '../../domain/config.ts';
import { edgeProxyEndpoints, edgeProxyPort } from '../../domain/edge-proxy/edge-proxy.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import { isSelected, type LabelSelector } from '../../kubernetes/label-selector.ts';
import { podManifest } from '../../providers/kubernetes/manifest.ts';
import { manifests } from './manifests.ts';

interface Peers {
  readonly from?: readonly { readonly podSelector: LabelSelector }[];
  readonly to?: readonly { readonly podSelector: LabelSelector }[];
  readonly ports?: readonly { readonly port: number }[];
}

interface Policy {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly podSelector: LabelSelector; readonly ingress?: readonly Peers[]; readonly egress?: readonly Peers[] };
}

const policies = parseAllDocuments(readFileSync('examples/kubernetes/network-policies.yaml', 'utf8')).map((one): Policy => one.toJS());

type Labels = Readonly<Record<string, string>>;

const labelsIn = (value: unknown): Labels => JSON.parse(JSON.stringify(value));

function podOf(deployment: string): Labels {
  const found = manifests(aDesign(), someSecrets, undefined).find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === deployment,
  );
  return labelsIn(JSON.parse(JSON.stringify(found)).spec.template.metadata.labels);
}

const replica = labelsIn(
  podManifest({
    config: kubernetesContextConfig(defaultConfig.kubernetes, 'a'),
    offer: anOffer({ provider: 'kubernetes' }),
    spec: aMachineSpec({ tags: { 'svc-service': 'chat', 'svc-service-key': 'abcd' } }),
    demands: { gpu: undefined, spot: [], avoided: [] },
    namespace: 'default',
    base: 'svc-chat',
    name: 'svc-chat',
    rank: 0,
    image: 'python:3',
    command: [],
    hasReadinessGate: true,
    anchor: { name: 'svc-abcd', uid: 'u' },
  }).metadata['labels'],
);

const pods = { controller: podOf('svc-controller'), balancer: podOf('svc-balancer'), checker: podOf('svc-health-checker'), replica };
type Peer = keyof typeof pods | 'outside';

/** Whether the policies of one end allow the connection, with everything else denied. */
function allows(end: Peer, other: Peer, port: number, direction: 'ingress' | 'egress'): boolean {
  if (end === 'outside') return true;
  const rules = policies.filter(({ spec }) => isSelected(spec.podSelector, pods[end])).flatMap(({ spec }) => spec[direction] ?? []);
  return rules.some(({ from, to, ports }) => {
    const peers = from ?? to;
    const isPeer = peers === undefined || (other !== 'outside' && peers.some(({ podSelector }) => isSelected(podSelector, pods[other])));
    return isPeer && (ports === undefined || ports.some((allowed) => allowed.port === port));
  });
}

const { first, last } = edgeProxyEndpoints;

test.each<readonly [from: Peer, to: Peer, port: number, isAllowed: boolean]>([
  ['controller', 'replica', 8080, true],
  ['balancer', 'replica', 8080, true],
  ['replica', 'replica', 8080, true],
  ['controller', 'balancer', edgeProxyPort, true],
  ['checker', 'balancer', edgeProxyPort, true],
  ['balancer', 'controller', 41_234, true],
  ['outside', 'balancer', first, true],
  ['outside', 'balancer', last, true],
  ['controller', 'outside', 6443, true],
  ['checker', 'outside', 443, true],
  ['outside', 'balancer', edgeProxyPort, false],
  ['outside', 'balancer', last + 1, false],
  ['outside', 'replica', 8080, false],
  ['outside', 'controller', 30_100, false],
  ['replica', 'balancer', edgeProxyPort, false],
  ['replica', 'controller', 41_234, false],
  ['checker', 'replica', 8080, false],
])('from %s to %s, port %d: %s', (from, to, port, isAllowed) => {
  expect(allows(from, to, port, 'egress') && allows(to, from, port, 'ingress')).toBe(isAllowed);
});
