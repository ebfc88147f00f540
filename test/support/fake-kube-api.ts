import type { KubeApi, KubeDraft, KubeObject, KubeRemoval } from '../../src/kubernetes/kube-api.ts';

/** An API server that stores objects by path and records its calls. */
export class FakeKubeApi implements KubeApi {
  readonly context = 'prod';
  readonly namespace = 'serving';
  readonly isInside = false;
  readonly objects = new Map<string, KubeObject>();
  /** `apply /api/v1/…`, in order. */
  readonly asked: string[] = [];
  /** Texts by their paths. */
  readonly texts = new Map<string, string>();
  /** Errors to throw for paths that contain the key. */
  readonly failures = new Map<string, Error>();
  /** Called with each object to apply. The caller gets the error that it throws. */
  onApply: (object: KubeDraft) => void = () => undefined;
  #count = 0;

  /** Stores an object. */
  put(path: string, object: object): void {
    this.#count += 1;
    const draft: KubeObject = {
      metadata: { name: path.split('/').at(-1) ?? '', uid: `u-${this.#count}`, resourceVersion: String(this.#count) },
      ...object,
    };
    this.objects.set(path, { ...draft, metadata: { ...draft.metadata, uid: `u-${this.#count}`, resourceVersion: String(this.#count) } });
  }

  get<T extends KubeObject>(path: string): Promise<T | undefined> {
    return this.#answer('get', path, () => this.#read<T>(path));
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the interface has it
  list<T extends KubeObject>(path: string, { labels = {} }: { readonly labels?: Readonly<Record<string, string>> } = {}) {
    return this.#answer('list', path, () => {
      const within = [...this.objects].filter(([each]) => each.startsWith(`${path}/`)).flatMap(([each]) => this.#read<T>(each) ?? []);
      const items = within.filter(({ metadata }) => Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value));
      return { items, resourceVersion: String(this.#count) };
    });
  }

  apply<T extends KubeObject>(path: string, object: KubeDraft): Promise<T> {
    return this.#answer('apply', path, () => {
      this.onApply(object);
      const before = this.objects.get(path)?.metadata.uid;
      this.put(path, object);
      const now = this.#read<T>(path);
      if (now === undefined) throw new Error('it was put there');
      if (before !== undefined) this.objects.set(path, { ...now, metadata: { ...now.metadata, uid: before } });
      return this.#read<T>(path) ?? now;
    });
  }

  create<T extends KubeObject>(path: string, object: KubeDraft): Promise<T | undefined> {
    return this.apply<T>(`${path}/${object.metadata.name}`, object);
  }

  replace<T extends KubeObject>(path: string, object: T): Promise<T | undefined> {
    return this.#answer('replace', path, () => {
      this.put(path, object);
      return this.#read<T>(path);
    });
  }

  merge<T extends KubeObject>(path: string, change: unknown): Promise<T | undefined> {
    return this.#answer(`merge ${JSON.stringify(change)}`, path, () => this.#read<T>(path));
  }

  remove(path: string, { uid }: Pick<KubeRemoval, 'uid'> = {}): Promise<boolean> {
    return this.#answer('remove', path, () => {
      const isMeant = uid === undefined || this.objects.get(path)?.metadata.uid === uid;
      return isMeant && this.objects.delete(path);
    });
  }

  text(path: string): Promise<string> {
    return this.#answer('text', path, () => this.texts.get(path) ?? '');
  }

  watch(): never {
    throw new Error('nothing is watched');
  }

  exec(): never {
    throw new Error('nothing is run');
  }

  portForward(): never {
    throw new Error('nothing is forwarded');
  }

  async #answer<Result>(verb: string, path: string, act: () => Result): Promise<Result> {
    this.asked.push(`${verb} ${path}`);
    for (const [part, failure] of this.failures) if (`${verb} ${path}`.includes(part)) throw failure;
    return act();
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type of the object
  #read<T extends KubeObject>(path: string): T | undefined {
    const found = this.objects.get(path);
    return found === undefined ? undefined : JSON.parse(JSON.stringify(found));
  }
}
