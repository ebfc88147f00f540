import type { ControllerHost } from '../../domain/controller-host.ts';
import type { Task } from '../../domain/task.ts';
import type { Provider } from '../../providers/provider.ts';
import type { OccupiedPlace } from '../../domain/placement.ts';
import type { PlacementHistory } from '../../provision/placement-history.ts';
import type { PlaceState } from '../../provision/places.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { ServiceRecord } from '../../store/records.ts';
import type { Store } from '../../store/store.ts';
import type { PublishedFiles } from '../deployments.ts';
import type { ProbeAnswer, ProbedService } from './probe-request.ts';
import type { Rotation } from './rotation.ts';

/** What everything that works for one service shares. */
export interface ServiceContext {
  readonly name: string;
  readonly key: string;
  /** The controller's machine, when that was chosen for it. */
  readonly host: ControllerHost | undefined;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: ServicePaths;
  /** Settles when its files are all there, which a controller that took over may have to fetch first. Absent: they are. */
  readonly filesThere?: Promise<void> | undefined;
  readonly rotation: Rotation;
  readonly history: PlacementHistory;
  /** Its files where machines fetch them. */
  readonly deployment: PublishedFiles;
  /** Aborts when the control of the service ends, as with its process. */
  readonly background: AbortSignal;
  /** All enabled places. */
  providers(): Promise<readonly Provider[]>;
  /** All places, with why those that are not enabled are not. */
  states(): Promise<readonly PlaceState[]>;
  /** One place, enabled or not: a machine may outlive the enabling of its place. */
  provider(name: string): Promise<Provider>;
  /** The task of a version; versions never change, so it is read once. */
  task(version: number): Promise<Task>;
  /** Asks a replica whether it is ready; never throws. */
  probe(address: ReplicaAddress, service: ProbedService, signal: AbortSignal): Promise<ProbeAnswer>;
  /** Where living replicas are now. */
  occupied(): readonly OccupiedPlace[];
  /** Reads the service, decides, and writes, again when somebody else wrote meanwhile; does nothing when it is gone. */
  changeService(decide: (service: ServiceRecord) => Partial<Pick<ServiceRecord, 'memory' | 'firstReadyAt'>> | undefined): Promise<void>;
  /** Makes the reconciler look again now. */
  wake(): void;
}
