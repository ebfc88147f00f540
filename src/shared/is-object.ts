/** Whether a value that came from outside, such as parsed JSON, is an object whose fields can be looked at; a list is none. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
