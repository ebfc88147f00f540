/** A selector of objects by labels, as in the specs of Kubernetes' objects. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] }[];
}

/** Whether a selector selects an object with these labels. An empty selector selects all objects, as in `policy/v1`. */
export function isSelected({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key];
      switch (operator) {
        case 'In':
          return value !== undefined && values.includes(value);
        case 'NotIn':
          return value === undefined || !values.includes(value);
        case 'Exists':
          return value !== undefined;
        case 'DoesNotExist':
          return value === undefined;
        default:
          // An operator of a later version: counting it as a match keeps svc out of the way.
          return true;
      }
    })
  );
}
