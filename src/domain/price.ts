/** US dollars as people read them: cents as a rule; below a dollar the three digits that tell small machines apart. */
export function dollars(amount: number): string {
  if (amount >= 1) return amount.toFixed(2);
  const digits = String(Number(amount.toPrecision(3)));
  return digits.length < '0.00'.length ? amount.toFixed(2) : digits;
}

/** A price per hour, such as `3.20 $/h`. */
export function hourlyPrice(hourlyUsd: number): string {
  return `${dollars(hourlyUsd)} $/h`;
}
