/** Whether a machine has all the tags that a caller of `Provider.list` requests. */
export function hasTags(tags: Readonly<Record<string, string>>, required: Readonly<Record<string, string>>): boolean {
  return Object.entries(required).every(([name, value]) => tags[name] === value);
}
