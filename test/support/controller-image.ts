import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The image of this checkout's Dockerfile. */
export interface ControllerImage {
  /** Its name, for `serve.controller.image`. */
  readonly name: string;
  /** For `TestCluster.loadImage`. */
  readonly archive: string;
}

/** Architecture of the image. */
export const controllerImageName = 'localhost/svc-controller:test';

let building: Promise<ControllerImage> | undefined;

/** Builds the project's Dockerfile without a registry: a minute for the first time, then only changed layers. */
export function controllerImage(): Promise<ControllerImage> {
  building ??= build();
  return building;
}

async function build(): Promise<ControllerImage> {
  const script = new URL('../testbed/kubernetes/controller-image.sh', import.meta.url).pathname;
  const { stdout } = await run(script, [], { env: { ...process.env, SVC_TESTBED_NODE: process.execPath }, maxBuffer: 64 * 1024 * 1024 });
  return { name: controllerImageName, archive: stdout.trim() };
}
