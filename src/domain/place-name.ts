/** Where something is, as far as it is known. */
export interface NamedPlace {
  readonly provider: string;
  readonly region: string;
  readonly zone?: string | null | undefined;
}

/** `provider/region[/zone]` */
export function placeName({ provider, region, zone }: NamedPlace): string {
  return [provider, region, ...(zone === undefined || zone === null ? [] : [zone])].join('/');
}

/** A place as users write it in `infra` and `svc check`, and as the pages do. */
export function writtenPlace(name: string): string {
  return name === 'kubernetes' ? 'k8s' : name;
}
