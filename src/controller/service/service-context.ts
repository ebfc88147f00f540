import type { EngineMetrics } from '../../domain/engine-metrics.ts';
import type { RemoteControllerInfo } from '../../domain/remote-controller-info.ts';
import type { Task } from '../../domain/task.ts';
import type { Provider } from '../../providers/provider.ts';
import type { OccupiedLocation, PlacementFacts } from '../../domain/placement.ts';
import type { PlacementHistory } from '../../provision/placement-history.ts';
import type { ProviderState } from '../../provision/providers.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import type { EngineAnswer } from './engine-request.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { ServiceRecord } from '../../domain/records.ts';
import type { Store } from '../../store/store.ts';
import type { PublishedFiles } from '../deploy/deployments.ts';
import type { ProbeAnswer, ProbedService } from './probe-request.ts';
import type { EndpointPublisher } from './endpoint-publisher.ts';
import type { ReplicaReports } from './replica-reports.ts';
import type { ZoneRecorder } from './zone-recorder.ts';

/** State and dependencies shared by everything that works for one service. */
export interface ServiceContext {
  readonly name: string;
  readonly key: string;
  /** The controller's machine; undefined on the user's own machine. */
  readonly controllerHost: RemoteControllerInfo | undefined;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: ServicePaths;
  /** Settles when all files of the service are local: a new leader may have to fetch them. Absent: they are. */
  readonly filesRestored?: Promise<void> | undefined;
  readonly endpoint: EndpointPublisher;
  readonly reports: ReplicaReports;
  readonly history: PlacementHistory;
  readonly zones: ZoneRecorder;
  /** The service's files as machines fetch them. */
  readonly deployment: PublishedFiles;
  /** Aborts when the control of the service ends, at the latest with its process. */
  readonly background: AbortSignal;
  providers(): Promise<readonly Provider[]>;
  /** All providers, with the reason for each disabled one. */
  states(): Promise<readonly ProviderState[]>;
  /** One provider, enabled or not: a machine may outlive the enabling of its provider. */
  provider(name: string): Promise<Provider>;
  /** The task of a version. Versions never change, so each is read once. */
  task(version: number): Promise<Task>;
  /** Probes a replica. Never throws. */
  probe(address: ReplicaAddress, service: ProbedService, signal: AbortSignal): Promise<ProbeAnswer>;
  /** Reads the metrics of a replica's engine; undefined when they are missing. Never throws. */
  measure(address: ReplicaAddress, path: string, signal: AbortSignal): Promise<EngineMetrics | undefined>;
  /** Makes a replica's engine sleep or wake up. Never throws. */
  tellEngine(address: ReplicaAddress, path: string, signal: AbortSignal): Promise<EngineAnswer>;
  occupied(): readonly OccupiedLocation[];
  /** See `highestPrice` in `domain/cost-limit.ts`; `launch` is the key of a replica. */
  highestPrice(launch: string): number | undefined;
  /** See `wakeOrder` in `domain/placement/wake.ts`. */
  wakeOrder(task: Task): PlacementFacts['readySeconds'];
  /** Reads the service, decides and writes. Retries when another writer was faster. Does nothing without a service. */
  changeService(decide: (service: ServiceRecord) => Pick<ServiceRecord, 'memory'>): Promise<void>;
  /** Makes the reconciler decide again now. */
  wake(): void;
}
