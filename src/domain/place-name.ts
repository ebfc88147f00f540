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
