import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { waitFor } from '../../support/wait-for.ts';
import { callScript, loopbackOf } from './call-script.ts';
import { ClusterApi } from './cluster-api.ts';
import type { PreparedTestbed } from './prepare.ts';

/** Options of a cluster. */
export interface ClusterOptions {
  /** Name of the context in kubeconfigs; default: `test`. */
  readonly name?: string;
  /** Real nodes with real pods, which need root. Default: none, only the API, its controllers and the scheduler. */
  readonly nodes?: 0 | 1 | 2 | 3;
  /** Disables beta APIs, except for those that Kubernetes 1.20 itself needs. */
  readonly withoutBetaApis?: boolean;
  /** Enables `auditLog`. */
  readonly audit?: boolean;
  /** How long a node may be silent before it is not ready; default: 10 s, and hours where no node is real. */
  readonly nodeGraceSeconds?: number;
  /** How long pods without their own tolerations stay on a node that is not ready; default: 5 s. */
  readonly evictionSeconds?: number;
}

/** A running cluster of a test. */
export class TestCluster extends ClusterApi {
  /**
   * Address of this computer as pods see it; undefined without nodes. A server at its port 5000 is the registry
   * `registry.test`.
   */
  readonly ownIp: string | undefined;
  readonly #call: (...args: readonly string[]) => Promise<string>;

  constructor(dir: string, prepared: PreparedTestbed, options: ClusterOptions) {
    const number = basename(dir);
    const ownIp = (options.nodes ?? 0) > 0 ? `10.${number}.0.1` : undefined;
    const call = (...args: readonly string[]): Promise<string> => callScript(prepared, args, dir);
    super(dir, `https://${ownIp ?? loopbackOf(number)}:6443`, options.name ?? 'test', call);
    this.ownIp = ownIp;
    this.#call = call;
  }

  /** Its address, which this computer also sees for its pods. */
  nodeIp(node: number): string {
    return `10.${basename(this.dir)}.0.${10 + node}`;
  }

  /** Waits until the node is ready. */
  async nodeReady(node: number): Promise<void> {
    await waitFor(`${this.nodeName(node)} of ${this.context} to be ready`, () => this.isNodeReady(node).catch(() => false), {
      everyMs: 200,
      describe: () => tailOf(`${this.dir}/node${node}/kubelet.log`),
    });
  }

  /**
   * Starts a new node, or one that was killed, with an empty disk, like a new machine of the same name. Resolves when
   * it is ready.
   */
  async startNode(node: number): Promise<void> {
    await this.#call('node', String(node));
    await this.nodeReady(node);
  }

  /** Simulates a power loss: the processes die and all packets are dropped silently. */
  async killNode(node: number): Promise<void> {
    await this.#call('kill-node', String(node));
  }

  /** Freezes all its processes, including those of pods. */
  async pauseNode(node: number): Promise<void> {
    await this.#call('pause-node', String(node));
  }

  /** Resumes them. */
  async resumeNode(node: number): Promise<void> {
    await this.#call('resume-node', String(node));
  }

  /** Freezes its kubelet alone: its pods continue, and no status is reported. */
  async pauseKubelet(node: number): Promise<void> {
    await this.#call('pause-kubelet', String(node));
  }

  /** Resumes it. */
  async resumeKubelet(node: number): Promise<void> {
    await this.#call('resume-kubelet', String(node));
  }

  /** Pulls its cable: it continues, but is unreachable. */
  async cutNode(node: number): Promise<void> {
    await this.#call('cut-node', String(node));
  }

  /** Reconnects it. */
  async healNode(node: number): Promise<void> {
    await this.#call('heal-node', String(node));
  }

  /** Kills the API server: connections to it end, new ones are refused. Everything else continues. */
  async stopApiServer(): Promise<void> {
    await this.#call('stop-api');
  }

  /** Resolves when it answers again. */
  async startApiServer(): Promise<void> {
    await this.#call('start-api');
  }

  /** Freezes the API server: connections stay open without replies. */
  async pauseApiServer(): Promise<void> {
    await this.#call('pause-api');
  }

  /** Resumes it. */
  async resumeApiServer(): Promise<void> {
    await this.#call('resume-api');
  }

  /**
   * Compacts the history: a watch from an earlier version gets 410. This restarts the API server, which has its own
   * cache of changes.
   */
  async compactEtcd(): Promise<void> {
    const etcd = `http://${loopbackOf(basename(this.dir))}:2379`;
    const ask = async (path: string, body: object): Promise<string> => {
      const reply = await fetch(`${etcd}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) });
      if (!reply.ok) throw new Error(`etcd ${path}: ${reply.status} ${await reply.text()}`);
      const { header }: { readonly header: { readonly revision: string } } = JSON.parse(await reply.text());
      return header.revision;
    };
    // One more change, so that no client has the newest version.
    await this.request('PATCH', '/api/v1/namespaces/kube-public', {
      metadata: { annotations: { 'svc-test/compacted': String(performance.now()) } },
    });
    const revision = await ask('range', { key: 'AA==' });
    await this.stopApiServer();
    await ask('compaction', { revision, physical: true });
    await this.startApiServer();
  }

  /** Loads an image on all nodes, including later ones. */
  async loadImage(tar: string): Promise<void> {
    await this.#call('load', tar);
  }

  /** Sets whether this computer has routes to pods, services and load balancers; at first it has. */
  async hostRoutes(isOn: boolean): Promise<void> {
    await this.#call('routes', isOn ? 'on' : 'off');
  }

  /**
   * Counts packets for addresses of the cluster that were about to leave this computer. They were dropped; there should
   * be none.
   */
  async leakedPackets(): Promise<number> {
    return Number(await this.#call('leaks'));
  }

  /** Removes the cluster. The caller must close connections into it first. */
  async release(): Promise<void> {
    await this.#call('release');
  }
}

/** Starts a cluster of this process. It ends with `release`, or when this process has ended. */
export async function startCluster(prepared: PreparedTestbed, options: ClusterOptions): Promise<TestCluster> {
  const { nodes = 0, withoutBetaApis = false, audit = false, evictionSeconds, nodeGraceSeconds = nodes === 0 ? 100_000 : 10 } = options;
  const dir = (await callScript(prepared, ['claim', String(process.pid), nodes === 0 ? 'api' : 'nodes'])).trim();
  try {
    await callScript(
      prepared,
      [
        'start',
        ...(withoutBetaApis ? ['--without-beta-apis'] : []),
        ...(audit ? ['--audit'] : []),
        '--node-grace',
        String(nodeGraceSeconds),
        ...(evictionSeconds === undefined ? [] : ['--eviction', String(evictionSeconds)]),
      ],
      dir,
    );
    const cluster = new TestCluster(dir, prepared, options);
    const starts = await Promise.allSettled(Array.from({ length: nodes }, (_, index) => cluster.startNode(index + 1)));
    // All starts must settle first: a starting node writes to the folder that the release removes.
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    return cluster;
  } catch (error) {
    await callScript(prepared, ['release'], dir);
    throw error;
  }
}

function tailOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').slice(-1000) : '';
}
