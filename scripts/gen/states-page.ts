import {
  finalStates,
  isAlive,
  isEnded,
  isFailed,
  replicaStates,
  transitions,
  type ReplicaState,
} from '../../src/domain/replica/replica-state.ts';
import { serviceStates, type ServiceState } from '../../src/domain/service-state.ts';
import { page, table } from './markdown.ts';

const replicaMeanings: Readonly<Record<ReplicaState, string>> = {
  PENDING: 'It is to be, and nothing has been asked for yet.',
  PROVISIONING: 'A machine was asked for, and files are being copied to it.',
  STARTING: 'The program was started; no probe has passed yet.',
  READY: 'Probes pass, and it gets requests.',
  NOT_READY: 'It was ready, and its last probe failed. It gets no requests.',
  SLEEPING: 'The service needs no replica. Its engine has released its memory; a request wakes it up.',
  SHUTTING_DOWN: 'It gets no new requests; its machine is being removed.',
  PREEMPTED: 'The provider reclaimed its machine. Another replica replaces it.',
  FAILED: 'Its program ended, or its machine was lost.',
  FAILED_INITIAL_DELAY: 'It did not become ready within `initial_delay_seconds`.',
  FAILED_PROBING: 'It was ready, and its probes, or all requests to it, failed for too long.',
  FAILED_PROVISION: 'No machine could be had or prepared for it.',
  FAILED_CLEANUP: 'Its machine could not be removed; that goes on being tried.',
  UNKNOWN: 'Its record contradicts itself; it is kept for a person to look at.',
  TERMINATED: 'It was no longer needed, and nothing of it is left.',
};

const serviceMeanings: Readonly<Record<ServiceState, string>> = {
  CONTROLLER_INIT: 'Its processes are starting.',
  REPLICA_INIT: 'Replicas are coming up, and none is ready yet.',
  READY: 'At least one replica is ready.',
  NO_REPLICA: 'No replica is there or awake, and none has failed: the service needs none, or has just begun.',
  SHUTTING_DOWN: 'It is being terminated.',
  FAILED: 'It cannot become ready: replicas kept failing, or all there are have failed.',
  CONTROLLER_FAILED: 'Its own processes keep dying.',
  FAILED_CLEANUP: 'Taking it down failed; `svc serve down NAME --purge` removes its record all the same.',
};

function diagram(): string {
  const lines = replicaStates.flatMap((from) => {
    return Object.entries(transitions[from]).flatMap(([event, to]) => {
      const targets = to === 'by-cause' ? [...new Set(Object.values(finalStates))] : [to];
      return targets.map((target) => `  ${from} --> ${target}: ${event}`);
    });
  });
  return ['```mermaid', 'stateDiagram-v2', '  [*] --> PENDING', ...lines, '```'].join('\n');
}

function eventCells(): readonly (readonly string[])[] {
  return replicaStates.flatMap((from) => {
    return Object.entries(transitions[from]).map(([event, to]) => [
      `\`${from}\``,
      event,
      to === 'by-cause' ? 'by the cause, see below' : `\`${to}\``,
    ]);
  });
}

const mark = (is: boolean): string => (is ? 'yes' : '');

/** docs/reference/states.md */
export function renderStatesPage(): string {
  return page(
    '# States',
    'Of services and replicas, as `svc serve status` prints them; from `src/domain/service-state.ts` and `src/domain/replica/replica-state.ts`. How they are made: [internals](../internals/states.md).',
    '## Services',
    table(
      ['State', 'Meaning'],
      serviceStates.map((state) => [`\`${state}\``, serviceMeanings[state]]),
    ),
    '## Replicas',
    'Counted: towards the desired number of replicas. Ended: nothing of it is left, and nothing happens to it any more.',
    table(
      ['State', 'Meaning', 'Counted', 'Failed', 'Ended'],
      replicaStates.map((state) => [
        `\`${state}\``,
        replicaMeanings[state],
        mark(isAlive(state)),
        mark(isFailed(state)),
        mark(isEnded(state)),
      ]),
    ),
    '## What leads from one to the other',
    diagram(),
    'An event that is not listed for a state is stale and changes nothing.',
    table(['From', 'Event', 'To'], eventCells()),
    'Once a machine is gone, the cause of its end decides the state:',
    table(
      ['Cause', 'State'],
      Object.entries(finalStates).map(([cause, state]) => [cause, `\`${state}\``]),
    ),
  );
}
