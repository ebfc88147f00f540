import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bundlePrefix, makeBundle } from '../../src/launcher/program-bundle.ts';
import { codeVersion } from '../../src/shared/version.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of this program as one bundle; undefined in projects without a bundle. */
    programBundle: string | undefined;
  }
}

/**
 * vitest calls this once, before any test of the project. Tests start hundreds of processes, and a bundled one needs
 * half of the processor time to start, because it loads few files. Controllers run the same bundle.
 */
export async function setup(project: TestProject): Promise<void> {
  const root = join(import.meta.dirname, '../..');
  const bundle = join(root, 'node_modules/.cache/svc-test-bundle', `${bundlePrefix}${codeVersion()}`);
  await makeBundle(bundle);
  project.provide('programBundle', bundle);
}
