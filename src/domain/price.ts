import { isSameAccelerator } from './accelerators.ts';
import type { KubernetesContextConfig } from './config.ts';

/** US dollars with cents. Below a dollar with three significant digits, which distinguish small machines. */
export function dollars(amount: number): string {
  if (amount >= 1) return amount.toFixed(2);
  const digits = String(Number(amount.toPrecision(3)));
  return digits.length < '0.00'.length ? amount.toFixed(2) : digits;
}

/** A price per hour, such as `3.20 $/h`. */
export function hourlyPrice(hourlyUsd: number): string {
  return `${dollars(hourlyUsd)} $/h`;
}

/** Hourly price of a pod by the configured prices, US dollars. */
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
  // Rounds to a millionth of a dollar: smaller amounts are never charged.
  return Math.round(sum * 1e6) / 1e6;
}
