/** Whether a machine has all the tags by which `Provider.list` is asked. */
export function hasTags(tags: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => tags[name] === value);
}
