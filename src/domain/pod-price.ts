import { isSameAccelerator } from './accelerators.ts';
import type { KubernetesContextConfig } from './config.ts';

/** What an hour of a pod costs by the configured prices, US dollars. */
export function podPrice(
  price: KubernetesContextConfig['price'],
  pod: {
    readonly cpus: number;
    readonly memoryGb: number;
    readonly accelerator: { readonly name: string; readonly count: number } | undefined;
  },
): number {
  const { accelerator } = pod;
  const each =
    accelerator === undefined
      ? 0
      : (Object.entries(price.accelerators).find(([name]) => isSameAccelerator(name, accelerator.name))?.[1] ?? 0);
  const sum = pod.cpus * price.cpu + pod.memoryGb * price.memoryGb + (accelerator?.count ?? 0) * each;
  // Cents of cents are nothing that anybody is charged.
  return Math.round(sum * 1e6) / 1e6;
}
