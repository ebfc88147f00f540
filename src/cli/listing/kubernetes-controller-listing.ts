import { outsideHint, type KubernetesControllerStatus, type PodLine } from '../../launcher/high-availability/status.ts';
import { oneLine } from './display-text.ts';

/** A label and a value on one line. */
export function row(label: string, value: string): string {
  return `${label.padEnd(17)}${value}`;
}

/** The status of a controller in a Kubernetes cluster, as lines. */
export function renderKubernetesController(status: KubernetesControllerStatus): readonly string[] {
  const { context, namespace, state, leader, database, controllers, balancers, checkers, endpoints } = status;
  const hint = outsideHint(status, endpoints.type);
  return [
    row('Cluster', `${context}, namespace ${namespace}${state === 'running' ? '' : ` (${describeState(state)})`}`),
    row('Leader', leader === null ? 'none at the moment' : `${leader.pod} (term ${leader.term})`),
    row('State', database === 'sqlite' ? 'SQLite on a volume' : 'PostgreSQL'),
    ...podRows('Controllers', controllers),
    ...podRows('Balancers', balancers),
    ...podRows('Health checkers', checkers),
    row('Endpoints', `${endpoints.host ?? 'no address'} (${endpoints.type})`),
    ...(hint === undefined ? [] : [row('', `from outside of the cluster: ${hint}`)]),
  ];
}

/** The command that shows a controller's log, which Kubernetes has. */
export function logCommand({ context, namespace, leader }: Pick<KubernetesControllerStatus, 'context' | 'namespace' | 'leader'>): string {
  return `kubectl --context ${context} -n ${namespace} logs ${leader?.pod ?? '-l svc-role=controller'}`;
}

function describeState(state: 'absent' | 'stopped'): string {
  return state === 'absent' ? 'its objects are gone; svc controller upgrade makes them again' : 'stopped; svc controller start starts it';
}

function podRows(label: string, pods: readonly PodLine[]): readonly string[] {
  const ready = pods.filter((pod) => pod.ready).length;
  return [row(label, `${ready} of ${pods.length} ready`), ...pods.map((pod) => row('', describePod(pod)))];
}

function describePod({ name, node, ready, trouble }: PodLine): string {
  const where = node === null ? 'on no node yet' : `on ${node}`;
  const how = trouble === null ? (ready ? 'ready' : 'coming up') : oneLine(trouble);
  return `${name} ${where}: ${how}`;
}
