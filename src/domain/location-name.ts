interface NamedLocation {
  readonly provider: string;
  readonly region: string;
  readonly zone?: string | null | undefined;
}

/** `provider/region[/zone]` */
export function locationName({ provider, region, zone }: NamedLocation): string {
  return [provider, region, ...(zone === undefined || zone === null ? [] : [zone])].join('/');
}

/** A location as users write it in `infra` and `svc check`, and as the documentation writes it. */
export function infraName(name: string): string {
  return name === 'kubernetes' ? 'k8s' : name;
}
