import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { waitFor } from '../../support/wait-for.ts';
import { callScript, loopbackOf } from './call-script.ts';
import { ClusterApi } from './cluster-api.ts';
import type { PreparedTestbed } from './prepare.ts';

/** What a cluster is to be like. */
export interface ClusterOptions {
  /** Of the context in kubeconfigs; default: `test`. */
  readonly name?: string;
  /** Real nodes with real pods, for which one has to be root; default: none, only the API, its controllers and the scheduler. */
  readonly nodes?: 0 | 1 | 2 | 3;
  /** Only stable APIs, but for those that Kubernetes 1.20 itself cannot do without. */
  readonly withoutBetaApis?: boolean;
  /** Lets `auditLog` say who called what. */
  readonly audit?: boolean;
  /** How long a node may be silent until it is not ready; default: 10 s, and hours where no node is real. */
  readonly nodeGraceSeconds?: number;
  /** How long pods without tolerations of their own stay on a node that is not ready; default: 5 s. */
  readonly evictionSeconds?: number;
}

/** A running cluster of a test. */
export class TestCluster extends ClusterApi {
  /** Address of this computer as pods see it; undefined without nodes. What listens at its port 5000 answers as registry `registry.test`. */
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

  /** Its address, which is also that of its pods to whom they call here. */
  nodeIp(node: number): string {
    return `10.${basename(this.dir)}.0.${10 + node}`;
  }

  /** Settles when the node is ready. */
  async nodeReady(node: number): Promise<void> {
    await waitFor(`${this.nodeName(node)} of ${this.context} to be ready`, () => this.isNodeReady(node).catch(() => false), {
      timeoutMs: 60_000,
      everyMs: 200,
      describe: () => tailOf(`${this.dir}/node${node}/kubelet.log`),
    });
  }

  /** A further node, or one that was killed: with an empty disk, like a new machine of the same name. Ready when this settles. */
  async startNode(node: number): Promise<void> {
    await this.#call('node', String(node));
    await this.nodeReady(node);
  }

  /** Like a machine that lost power: its processes are gone, what is sent to it vanishes, and nobody is told. */
  async killNode(node: number): Promise<void> {
    await this.#call('kill-node', String(node));
  }

  /** All its processes stand still, those of pods as well. */
  async pauseNode(node: number): Promise<void> {
    await this.#call('pause-node', String(node));
  }

  /** They go on. */
  async resumeNode(node: number): Promise<void> {
    await this.#call('resume-node', String(node));
  }

  /** Its cable is pulled: it goes on, and nobody hears of it. */
  async cutNode(node: number): Promise<void> {
    await this.#call('cut-node', String(node));
  }

  /** The cable is back. */
  async healNode(node: number): Promise<void> {
    await this.#call('heal-node', String(node));
  }

  /** The API server is killed: connections to it end, new ones are refused. Everything else goes on. */
  async stopApiServer(): Promise<void> {
    await this.#call('stop-api');
  }

  /** It answers again when this settles. */
  async startApiServer(): Promise<void> {
    await this.#call('start-api');
  }

  /** The API server stands still: connections stay open, nothing is answered. */
  async pauseApiServer(): Promise<void> {
    await this.#call('pause-api');
  }

  /** It goes on. */
  async resumeApiServer(): Promise<void> {
    await this.#call('resume-api');
  }

  /**
   * The past is forgotten: a watch that is to go on from a version of before is answered 410. The API server is restarted for that, as it
   * remembers changes of its own.
   */
  async compactEtcd(): Promise<void> {
    const etcd = `http://${loopbackOf(basename(this.dir))}:2379`;
    const ask = async (path: string, body: object): Promise<string> => {
      const reply = await fetch(`${etcd}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) });
      if (!reply.ok) throw new Error(`etcd ${path}: ${reply.status} ${await reply.text()}`);
      const { header }: { readonly header: { readonly revision: string } } = JSON.parse(await reply.text());
      return header.revision;
    };
    // A change more, so that what everybody knows is not the newest.
    await this.request('PATCH', '/api/v1/namespaces/kube-public', {
      metadata: { annotations: { 'svc-test/compacted': String(performance.now()) } },
    });
    const revision = await ask('range', { key: 'AA==' });
    await this.stopApiServer();
    await ask('compaction', { revision, physical: true });
    await this.startApiServer();
  }

  /** Gives all nodes an image, also those that come later. */
  async loadImage(tar: string): Promise<void> {
    await this.#call('load', tar);
  }

  /** Whether this computer has routes to pods, services and load balancers, as it has at first. */
  async hostRoutes(isOn: boolean): Promise<void> {
    await this.#call('routes', isOn ? 'on' : 'off');
  }

  /** Packets for addresses of the cluster that were about to leave this computer. They were dropped; there should be none. */
  async leakedPackets(): Promise<number> {
    return Number(await this.#call('leaks'));
  }

  /** Everything is gone. What still holds connections into the cluster is to be ended before. */
  async release(): Promise<void> {
    await this.#call('release');
  }
}

/** Starts a cluster of this process. It ends with `release`, or by itself when this process has ended. */
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
    await Promise.all(Array.from({ length: nodes }, (_, index) => cluster.startNode(index + 1)));
    return cluster;
  } catch (error) {
    await callScript(prepared, ['release'], dir);
    throw error;
  }
}

function tailOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').slice(-1000) : '';
}
