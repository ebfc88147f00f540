import type { ControllerHost } from '../../domain/controller-host.ts';
import type { Task } from '../../domain/task.ts';
import { PlacementHistory } from '../../provision/placement-history.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Fence } from '../../shared/fence.ts';
import type { Logger } from '../../shared/log.ts';
import { startLoop, type RunningLoop } from '../../shared/loop.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import { systemRandom, type Random } from '../../shared/random.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { Store } from '../../store/store.ts';
import type { Places } from '../../provision/places.ts';
import { serviceDeployment } from '../deployments.ts';
import { adoptReplicas } from './adopt-replicas.ts';
import type { BalancerListeners, BalancerView } from './balancer-client.ts';
import { machineLoop } from './machine-sweep.ts';
import { orphanLoop } from './orphan-sweep.ts';
import { Reconciler } from './reconciler.ts';
import { Rotation, type RotationSink } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';

/** The reconciler's end of the link to a balancer. */
export interface BalancerPort extends RotationSink {
  readonly view: BalancerView;
}

/** What the control of one service needs from outside. */
export interface ServiceDeps {
  readonly name: string;
  readonly key: string;
  readonly host: ControllerHost | undefined;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: ServicePaths;
  /** See `ServiceContext`. */
  readonly filesThere?: Promise<void> | undefined;
  /** Lets calls through while the controller leads. */
  readonly fence: Fence;
  readonly places: Places;
  readonly probe: ServiceContext['probe'];
  /** Spreads what is done after a throttled call. */
  readonly random?: Random;
  /** Opens the link; the listeners are called from then on. */
  openBalancer(listeners: BalancerListeners): BalancerPort;
}

/** The running control of one service. */
export interface RunningService {
  /** Makes it look again now. */
  wake(): void;
  /** Settles when all loops have ended after the stop. */
  readonly ended: Promise<unknown>;
}

/** Adopts what is there and keeps the service as it is wanted until `stop` aborts; aborts it itself when the service is gone. */
export async function runService(deps: ServiceDeps, stop: AbortController): Promise<RunningService> {
  const { name, key, store, clock, log } = deps;
  let loop: RunningLoop | undefined;
  const tasks = new Map<number, Task>();
  const balancer = deps.openBalancer({
    arrivals: (count, queued) => reconciler.arrivals(count, queued),
    suspect: (replicaId) => reconciler.suspect(replicaId),
  });
  const context: ServiceContext = {
    name,
    key,
    host: deps.host,
    store,
    clock,
    log,
    files: deps.files,
    filesThere: deps.filesThere,
    rotation: new Rotation(balancer, randomHex(8)),
    history: new PlacementHistory({
      memory: (await store.services.get(name))?.memory.placement,
      random: deps.random ?? systemRandom,
      save: (placement) => {
        const saved = context.changeService(({ memory }) => ({ memory: { ...memory, placement } }));
        void saved.catch((error: unknown) => log.warn({ err: error }, 'what was learned of the places could not be saved'));
      },
    }),
    background: stop.signal,
    deployment: serviceDeployment(deps.files.dir, deps),
    ...deps.places,
    async task(version) {
      const known = tasks.get(version) ?? (await store.services.version(name, version))?.task;
      if (known === undefined)
        throw new SvcError('SVC_SERVICE_NOT_FOUND', `Version ${version} of service '${name}' is not in the database.`);
      tasks.set(version, known);
      return known;
    },
    probe: deps.probe,
    occupied: () => reconciler.occupied(),
    async changeService(decide) {
      for (;;) {
        const service = await store.services.get(name);
        const change = service === undefined || service.key !== key ? undefined : decide(service);
        if (service === undefined || change === undefined || (await store.services.update(service, change)) !== undefined) return;
      }
    },
    wake: () => loop?.wake(),
  };
  const reconciler = new Reconciler(context, balancer, () => stop.abort());
  await adoptReplicas(context, await store.replicas.list(name));
  const onError = (failed: string, error: unknown): void => log.error({ err: error, loop: failed }, 'a pass failed');
  loop = startLoop(reconciler, { clock, onError }, stop.signal);
  const lost = machineLoop(
    context,
    (machine) => reconciler.machineLost(machine),
    () => machines.wake(),
  );
  const machines = startLoop(lost, { clock, onError }, stop.signal);
  const orphans = startLoop(orphanLoop(context), { clock, onError }, stop.signal);
  return { wake: () => context.wake(), ended: Promise.all([loop.ended, machines.ended, orphans.ended]) };
}
