/** Whether an untrusted value, such as parsed JSON, is an object with fields. A list does not count. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
