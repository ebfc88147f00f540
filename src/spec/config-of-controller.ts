import { parse } from 'yaml';
import { isObject } from '../shared/json.ts';
import { printYaml } from './print-yaml.ts';

interface ControllerEnvironment {
  /** For which the controller has credentials. */
  readonly providers: readonly string[];
  /** To which the controller has access; its own first. */
  readonly contexts: readonly string[];
}

/**
 * Derives the configuration of a controller in a Kubernetes cluster from its user's, without the settings for deploying
 * it and for the user's machine. Equal files give equal text.
 */
export function configOfController(text: string, { providers, contexts }: ControllerEnvironment): string {
  const said: unknown = parse(text);
  const { serve: _serve, local: _local, kubernetes, ...rest } = isObject(said) ? said : {};
  const limited =
    isObject(kubernetes) && kubernetes['allowed_contexts'] !== undefined ? { ...kubernetes, allowed_contexts: contexts } : kubernetes;
  const config = {
    ...rest,
    allowed_clouds: providers,
    // Kubernetes keeps the controller running, so it must not stop when idle.
    serve: { controller: { autostop: false } },
    ...(limited !== undefined && { kubernetes: limited }),
  };
  return printYaml([config], ['Made by svc from the configuration of the user who created this controller.']).replace('---\n', '');
}
