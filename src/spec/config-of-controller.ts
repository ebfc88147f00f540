import { parse } from 'yaml';
import { isObject } from '../shared/is-object.ts';
import { printYaml } from './print-yaml.ts';

/** What holds for a controller in a cluster rather than for the machine on which its user sits. */
export interface ControllerSurroundings {
  /** The places that it was given what it needs for. */
  readonly places: readonly string[];
  /** The clusters that it was given access to; its own first. */
  readonly contexts: readonly string[];
}

/**
 * The configuration file for a controller in a cluster, from its user's: without what is about bringing it up, and without this machine's settings. Equal
 * files give equal text.
 */
export function configOfController(text: string, { places, contexts }: ControllerSurroundings): string {
  const said: unknown = parse(text);
  const { serve: _serve, local: _local, kubernetes, ...rest } = isObject(said) ? said : {};
  const limited =
    isObject(kubernetes) && kubernetes['allowed_contexts'] !== undefined ? { ...kubernetes, allowed_contexts: contexts } : kubernetes;
  const config = {
    ...rest,
    allowed_clouds: places,
    // Kubernetes keeps it running: it is not to end because it has nothing to do.
    serve: { controller: { autostop: false } },
    ...(limited !== undefined && { kubernetes: limited }),
  };
  return printYaml([config], ['Made by svc from the configuration of whoever brought this controller up.']).replace('---\n', '');
}
