import type { Task } from '../../domain/task.ts';
import { uploadsOf } from '../../domain/upload-layout.ts';
import { uploadFiles, uploadName } from '../../launcher/upload-files.ts';
import type { ControllerPlan } from '../../launcher/controller-plan.ts';
import { type ControllerRecord, readControllerRecord } from '../../launcher/controller-record.ts';
import { differencesInCluster, madeInCluster } from '../../launcher/high-availability/differences.ts';
import {
  type HighAvailabilityDeps,
  ensureInCluster,
  healInCluster,
  leaderRemote,
  openLeaderTunnel,
  recorded,
  removeFromCluster,
  restartInCluster,
  startInCluster,
  stopInCluster,
  upgradeInCluster,
} from '../../launcher/high-availability/high-availability.ts';
import { planInCluster, preflightInCluster } from '../../launcher/high-availability/plan.ts';
import { inContainer } from '../../launcher/high-availability/names.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { systemRandom } from '../../shared/random.ts';
import { loadConfig } from '../../spec/load-config.ts';
import type { OnStep, RemoteController } from './controller-connection.ts';
import { openProviders } from './open-providers.ts';
import { type ApiClient, createClient } from '../../api/client.ts';
import { type Leader, findLeader } from '../../launcher/high-availability/leader.ts';
import { TroubleWatch } from '../../launcher/high-availability/rollout.ts';
import { kubeApiOpener, type KubernetesSite } from '../../launcher/high-availability/site.ts';
import { type KubernetesControllerStatus, kubernetesControllerStatus } from '../../launcher/high-availability/status.ts';
import type { Remote } from '../../remote/remote.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import { probe } from './local-controller-connection.ts';

/** Prepares access to a controller in a Kubernetes cluster. Makes no call yet. */
export function connectKubernetesController(paths: HomePaths, clock: Clock, signal: AbortSignal): RemoteController {
  const config = (): ReturnType<typeof loadConfig> => loadConfig(paths.config);
  const providers = openProviders(paths, clock);
  const openApi = kubeApiOpener(clock, systemRandom);
  const depsWith = (onStep: OnStep): HighAvailabilityDeps => ({ paths, providers, config, clock, signal, onStep, openApi });
  const silent = depsWith(() => undefined);
  const record = (): ControllerRecord | undefined => readControllerRecord(paths.controllerRecord);

  const client = new KubernetesControllerClient(depsWith);
  return {
    client: (onStep) => client.get(onStep),
    clientIfChosen: (onStep) => client.bringUp(onStep),
    running: () => client.running(),
    existing: () => client.existing(),
    async bring(task: Task, source, onStep) {
      if (uploadsOf(task).length === 0) return undefined;
      const remote = await client.leadersRemote(recorded(silent).site);
      const upload = uploadName(source);
      await uploadFiles(remote, task, upload, { paths, signal, onStep, home: inContainer.home });
      return upload;
    },
    preflight: () => preflightInCluster(silent),
    planWhileLocal: async () => undefined,
    plan: (): Promise<ControllerPlan | undefined> => planInCluster(silent),
    record,
    async machine(): Promise<MachineStatus | undefined> {
      const known = record()?.cluster;
      if (known === undefined) return undefined;
      const { state } = await client.status(known);
      return { state: state === 'absent' ? 'booting' : state };
    },
    async differences() {
      const { site, record: known } = recorded(silent);
      return differencesInCluster(await config(), known, await madeInCluster(site, openApi(site), signal));
    },
    upgrade: (onStep) => upgradeInCluster(depsWith(onStep)),
    async remove(purge, onStep) {
      await removeFromCluster(depsWith(onStep), purge);
      return undefined;
    },
    inCluster: {
      status: async () => client.status(recorded(silent).site),
      leading: async () => client.leading(recorded(silent).site),
      start: (onStep) => startInCluster(depsWith(onStep)),
      stop: () => stopInCluster(silent),
      restart: (onStep) => restartInCluster(depsWith(onStep)),
    },
  };
}

/** How long a new controller may take until a leader answers, ms: images must be pulled, and volumes created. */
const bringUpTimeoutMs = 600_000;
/** The same for an existing controller: a node may just have been lost. */
const answerTimeoutMs = 120_000;
/** Timeout of one attempt to reach the leader, ms. After it, another controller may lead. */
const attemptMs = 8_000;
const pollMs = 500;

/** The API of the current leader in a Kubernetes cluster, which may change between calls. */
class KubernetesControllerClient {
  readonly #depsWith: (onStep: OnStep) => HighAvailabilityDeps;
  readonly #silent: HighAvailabilityDeps;

  constructor(depsWith: (onStep: OnStep) => HighAvailabilityDeps) {
    this.#depsWith = depsWith;
    this.#silent = depsWith(() => undefined);
  }

  /** The API of the existing or configured controller. Deploys or starts one when none leads. */
  async get(onStep: OnStep): Promise<ApiClient> {
    const { site, record: known } = recorded(this.#silent);
    const api = known.machineId === null ? undefined : await this.leading(site);
    if (api !== undefined) return api;
    await ensureInCluster(this.#depsWith(onStep));
    const { state } = await this.status(site);
    if (state === 'stopped') await startInCluster(this.#depsWith(onStep));
    return this.#untilUp(site, onStep);
  }

  async bringUp(onStep: OnStep): Promise<ApiClient> {
    return this.#untilUp(await ensureInCluster(this.#depsWith(onStep)), onStep);
  }

  /** The API of a controller that is not stopped. */
  async running(): Promise<ApiClient | undefined> {
    const { site } = recorded(this.#silent);
    const known = await this.leading(site);
    if (known !== undefined) return known;
    const { state } = await this.status(site);
    // After a leader is lost, there is none for a few seconds.
    return state === 'running' ? this.#untilLeading(site, () => undefined, answerTimeoutMs) : undefined;
  }

  /** The API of a controller that may have services. */
  async existing(): Promise<ApiClient | undefined> {
    const { site, record: known } = recorded(this.#silent);
    if (known.machineId === null || (await this.status(site)).state === 'absent') return undefined;
    // A stopped controller may have services: a command that lists them must start it.
    return this.get(() => undefined);
  }

  /** The API of the current leader, if it answers. After a node was lost, another controller leads. */
  async leading(site: KubernetesSite): Promise<ApiClient | undefined> {
    const leader = await this.#leader(site);
    return leader === undefined ? undefined : this.#ask(site, leader);
  }

  async leadersRemote(site: KubernetesSite): Promise<Remote> {
    const leader = await this.#leader(site);
    if (leader === undefined) throw unreachable(site, 'has no leader at the moment');
    return leaderRemote(site, leader, this.#silent);
  }

  status(site: KubernetesSite): Promise<KubernetesControllerStatus> {
    return kubernetesControllerStatus(site, this.#silent.openApi(site), this.#silent.signal);
  }

  #leader(site: KubernetesSite): Promise<Leader | undefined> {
    return findLeader(this.#silent.openApi(site), site, this.#silent.signal);
  }

  async #ask(site: KubernetesSite, leader: Leader): Promise<ApiClient | undefined> {
    const { clock, signal } = this.#silent;
    const attempt = async (inner: AbortSignal): Promise<ApiClient | undefined> => {
      const socketPath = await openLeaderTunnel(leaderRemote(site, leader, this.#silent), inner);
      const api = createClient({ socketPath, clock, signal });
      return (await probe(api)) === undefined ? undefined : api;
    };
    try {
      return await withDeadline(clock, attemptMs, attempt, () => new Error('late'), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SvcError && error.code === 'SVC_VERSION_MISMATCH') throw error;
      return undefined;
    }
  }

  #untilUp(site: KubernetesSite, onStep: OnStep): Promise<ApiClient> {
    return this.#untilLeading(site, onStep, bringUpTimeoutMs, () => healInCluster(this.#depsWith(onStep)));
  }

  /** `heal`: called before each poll; deploys the controller's objects again when they were removed. */
  async #untilLeading(site: KubernetesSite, onStep: OnStep, timeoutMs: number, heal?: () => Promise<void>): Promise<ApiClient> {
    const { clock, signal, openApi } = this.#silent;
    const watch = new TroubleWatch(site, { ...this.#depsWith(onStep), api: openApi(site) });
    const deadline = clock.monotonic() + timeoutMs;
    for (;;) {
      const api = await this.leading(site);
      if (api !== undefined) return api;
      await heal?.();
      onStep(await watch.check());
      if (clock.monotonic() > deadline) throw unreachable(site, `does not answer within ${timeoutMs / 60_000} minutes`);
      await clock.sleep(pollMs, signal);
      signal.throwIfAborted();
    }
  }
}

function unreachable({ context, namespace }: KubernetesSite, what: string): SvcError {
  return new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller in ${context}/${namespace} ${what}.`, {
    hint: `Run the command again. To see its pods: svc controller status`,
  });
}
