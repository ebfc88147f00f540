import type { RemoteControllerInfo } from '../../domain/remote-controller-info.ts';
import { tlsRefused } from '../../domain/balancer-link.ts';
import { highestPrice } from '../../domain/cost-limit.ts';
import { locationsOf } from '../../domain/placement/occupied.ts';
import { wakeOrder } from '../../domain/placement/wake.ts';
import type { Task } from '../../domain/task.ts';
import { PlacementHistory, placementAfterRestart } from '../../provision/placement-history.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Fence } from '../../shared/fence.ts';
import type { Logger } from '../../shared/log.ts';
import { startLoop, type RunningLoop } from '../../shared/loop.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import { systemRandom, type Random } from '../../shared/random.ts';
import { randomHex } from '../../shared/hex.ts';
import { compareAndSwap } from '../../store/compare-and-swap.ts';
import type { Store } from '../../store/store.ts';
import type { Providers } from '../../provision/providers.ts';
import { serviceDeployment } from '../deploy/deployments.ts';
import type { BalancerPort } from './balancer-client.ts';
import { machineLoop, type SeenMachine } from './machine-watch.ts';
import { adoptAfterRestore, orphanLoop } from './orphan-sweep.ts';
import { readinessLoop } from './readiness-loop.ts';
import { Reconciler } from './reconciler.ts';
import { EndpointPublisher } from './endpoint-publisher.ts';
import { ReplicaReports } from './replica-reports.ts';
import type { ServiceContext } from './service-context.ts';
import { ZoneRecorder } from './zone-recorder.ts';
import { subjectEvent } from '../../domain/records.ts';

interface ServiceDeps {
  readonly name: string;
  readonly key: string;
  readonly controllerHost: RemoteControllerInfo | undefined;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: ServicePaths;
  readonly filesRestored?: Promise<void> | undefined;
  /** Permits calls while the controller leads. */
  readonly fence: Fence;
  readonly providers: Providers;
  readonly probe: ServiceContext['probe'];
  readonly measure: ServiceContext['measure'];
  readonly tellEngine: ServiceContext['tellEngine'];
  /** Jitter for retries after a throttled call. */
  readonly random?: Random;
  readonly balancer: BalancerPort;
}

interface RunningService {
  wake(): void;
  /** Settles when all loops have ended after the stop. */
  readonly ended: Promise<unknown>;
}

/** Adopts existing replicas and keeps the service at its desired state. Aborts `stop` when the service is gone. */
export async function runService(deps: ServiceDeps, stop: AbortController): Promise<RunningService> {
  const { name, key, store, clock, log, balancer } = deps;
  // Read before the context exists: an `await` from there to `balancer.open` lets callbacks run without dependencies.
  const remembered = (await store.services.get(name))?.memory.placement;
  let loop: RunningLoop | undefined;
  const tasks = new Map<number, Task>();
  const context: ServiceContext = {
    name,
    key,
    controllerHost: deps.controllerHost,
    store,
    clock,
    log,
    files: deps.files,
    filesRestored: deps.filesRestored,
    endpoint: new EndpointPublisher(balancer, randomHex(8), () => reconciler.endpointInput()),
    reports: new ReplicaReports(() => context.endpoint.refresh()),
    history: new PlacementHistory({
      memory: placementAfterRestart(remembered, clock.now()),
      random: deps.random ?? systemRandom,
      save: newestOnly(
        (placement) => context.changeService(({ memory }) => ({ memory: { ...memory, placement } })),
        (error) => log.warn({ err: error }, 'what was learned of the providers could not be saved'),
      ),
    }),
    zones: new ZoneRecorder(store.zones, clock, (error) => log.warn({ err: error }, 'the history of a spot zone could not be saved')),
    background: stop.signal,
    deployment: serviceDeployment(deps.files.dir, deps),
    ...deps.providers,
    async task(version) {
      const known = tasks.get(version) ?? (await store.services.version(name, version))?.task;
      if (known === undefined)
        throw new SvcError('SVC_SERVICE_NOT_FOUND', `Version ${version} of service '${name}' is not in the database.`);
      tasks.set(version, known);
      return known;
    },
    probe: deps.probe,
    measure: deps.measure,
    tellEngine: deps.tellEngine,
    occupied: () => locationsOf(reconciler.replicas),
    highestPrice: (launch) => highestPrice(reconciler.limitUsd, reconciler.replicas, launch, (other) => context.history.heldBy(other)),
    wakeOrder: (task) => wakeOrder(task, { queued: balancer.view.queued, replicas: reconciler.replicas }),
    async changeService(decide) {
      await compareAndSwap(
        () => store.services.get(name, key),
        (service) => {
          return store.services.update(service, decide(service));
        },
      );
    },
    wake: () => loop?.wake(),
  };
  const reconciler = new Reconciler(context, balancer, () => stop.abort());
  balancer.open({
    arrivals: (count, queued) => reconciler.arrivals(count, queued),
    suspect: (replicaId, reason) => reconciler.suspect(replicaId, reason),
    tlsChanged: (problem) => {
      const recorded = recordTlsChange(deps, problem);
      void recorded.catch((error: unknown) => log.warn({ err: error }, 'a change of the TLS files could not be recorded'));
    },
  });
  await context.zones.load();
  await adoptAfterRestore(context, stop.signal);
  await reconciler.adopt();
  const onError = (failed: string, error: unknown): void => log.error({ err: error, loop: failed }, 'a pass failed');
  loop = startLoop(reconciler, { clock, onError }, stop.signal);
  const listener = { seen: (machine: SeenMachine) => reconciler.machineSeen(machine), allAsked: () => reconciler.machinesAsked() };
  const machines = startLoop(
    machineLoop(context, listener, () => machines.wake()),
    { clock, onError },
    stop.signal,
  );
  const orphans = startLoop(orphanLoop(context), { clock, onError }, stop.signal);
  const readiness = startLoop(
    readinessLoop(context, () => reconciler.endpointInput()),
    { clock, onError },
    stop.signal,
  );
  return { wake: () => context.wake(), ended: Promise.all([loop.ended, machines.ended, orphans.ended, readiness.ended]) };
}

/** Saves one value at a time, of waiting ones only the newest: each save competes with the reconciler's commits. */
function newestOnly<Value>(save: (value: Value) => Promise<void>, onError: (error: unknown) => void): (value: Value) => void {
  let isSaving = false;
  let newest: { readonly value: Value } | undefined;
  const saveAll = async (): Promise<void> => {
    isSaving = true;
    while (newest !== undefined) {
      const { value } = newest;
      newest = undefined;
      await save(value).catch(onError);
    }
    isSaving = false;
  };
  return (value) => {
    newest = { value };
    if (!isSaving) void saveAll();
  };
}

/** Records in status and history how the balancer reacted to new TLS files. See `BalancerListeners.tlsChanged`. */
async function recordTlsChange({ name, key, store, clock }: ServiceDeps, problem: string | null): Promise<void> {
  const cause = problem === null ? 'tls-renewed' : 'tls-refused';
  const message = problem ?? 'The endpoint serves with the TLS files that are there now.';
  await compareAndSwap(
    () => store.services.get(name, key),
    (service) => {
      const isOurs = service.reason === null || service.reason.startsWith(tlsRefused);
      const event = subjectEvent(service, { at: clock.now(), cause, message });
      return store.services.update(service, isOurs ? { reason: problem } : {}, event);
    },
  );
}
