import { isMap, parseDocument } from 'yaml';
import { SvcError } from '../shared/errors.ts';

/**
 * The text of a service file with other values in `service.replica_policy`: `FIELD=VALUE` each, `FIELD=` to remove one. The parser checks the
 * result as if the user had written it. Throws SVC_USAGE for an assignment without a name.
 */
export function setPolicyFields(source: string, assignments: readonly string[]): string {
  if (assignments.length === 0) return source;
  const document = parseDocument(source);
  // The parser reports what is wrong with the file itself, with positions.
  if (document.errors.length > 0 || !isMap(document.get('service'))) return source;
  const section = ['service', 'replica_policy'];
  const replicas: unknown = document.getIn(['service', 'replicas']);
  if (replicas !== undefined && !document.hasIn(section)) {
    document.deleteIn(['service', 'replicas']);
    document.setIn([...section, 'min_replicas'], replicas);
  }
  for (const assignment of assignments) {
    const [, field, value = ''] = /^([a-z_]+)=(.*)$/s.exec(assignment) ?? [];
    if (field === undefined) {
      throw new SvcError('SVC_USAGE', `'${assignment}' does not set a field of replica_policy.`, {
        hint: 'Write FIELD=VALUE, such as max_replicas=20.',
      });
    }
    if (value === '') document.deleteIn([...section, field]);
    else document.setIn([...section, field], parseDocument(value).contents);
  }
  return document.toString();
}
