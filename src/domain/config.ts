import type { Accelerator, ResourceAlternatives } from './task.ts';

/** `config.yaml` below SVC_HOME after parsing, defaults filled in. */
export interface Config {
  readonly serve: { readonly controller: ControllerConfig };
  readonly local: LocalConfig;
  readonly aws: AwsConfig;
  /** Places that may be used, lower case; undefined allows all. */
  readonly allowedClouds: readonly string[] | undefined;
}

/** Settings of the controller. They apply to the next controller that starts, never to a running one. */
export interface ControllerConfig {
  /** The machine it runs on; undefined is the default (this machine, or a small on-demand one). */
  readonly resources: ResourceAlternatives | undefined;
  readonly highAvailability: boolean;
  /** When it stops by itself after the last service ended; undefined: never. */
  readonly autostop: { readonly idleMinutes: number; readonly down: boolean } | undefined;
}

/** Settings of the place `aws`. What is absent is for the AWS SDK's own configuration to say. */
export interface AwsConfig {
  /** A profile of `~/.aws/config`; undefined: `AWS_PROFILE` or the default one. */
  readonly profile: string | undefined;
  /** The only regions to use; undefined: all of the catalogue. */
  readonly regions: readonly string[] | undefined;
  /** Name tag or id of the VPC to use in every region; undefined: the default one. */
  readonly vpc: string | undefined;
  /** Reach machines at their private addresses, as when the controller is in the same VPC. */
  readonly useInternalIps: boolean;
  /** Addresses or ranges from which this machine's SSH connections come; undefined: its address as AWS sees it. */
  readonly sshFrom: readonly string[] | undefined;
  /** Name of the instance profile for a controller on AWS; undefined: one is made. */
  readonly controllerRole: string | undefined;
}

/** Kinds of isolation that the local provider knows; `auto` tries them in order. */
export const localIsolations = ['auto', 'root', 'userns', 'bwrap', 'podman', 'container', 'none'] as const;
export type LocalIsolation = (typeof localIsolations)[number];

/** Settings of the local provider. */
export interface LocalConfig {
  /** At least one. */
  readonly regions: readonly LocalRegion[];
  readonly isolation: LocalIsolation;
  /** What to offer instead of the GPUs that are found; undefined: detect them. */
  readonly gpus: Accelerator | undefined;
}

/** A region this machine pretends to have. `refusing`: no new machines; `lost`: its machines are gone as well. */
export interface LocalRegion {
  readonly name: string;
  readonly state: 'up' | 'refusing' | 'lost';
  /** What a refusal looks like. */
  readonly refuseWith: 'capacity' | 'quota';
  /** undefined: as many as there is room for. */
  readonly maxMachines: number | undefined;
}

/** What holds when there is no configuration file. */
export const defaultConfig: Config = {
  serve: { controller: { resources: undefined, highAvailability: false, autostop: { idleMinutes: 10, down: false } } },
  local: {
    regions: [{ name: 'local', state: 'up', refuseWith: 'capacity', maxMachines: undefined }],
    isolation: 'auto',
    gpus: undefined,
  },
  aws: { profile: undefined, regions: undefined, vpc: undefined, useInternalIps: false, sshFrom: undefined, controllerRole: undefined },
  allowedClouds: undefined,
};
