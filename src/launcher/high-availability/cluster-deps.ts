import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';

/** What changes in a cluster are made and waited for with. */
export interface ClusterDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told what is being done, for people. */
  readonly onStep: (text: string) => void;
}
