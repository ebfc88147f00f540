import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeBundle } from '../src/launcher/program-bundle.ts';

/** Writes dist/bundle, the program for the machine of a remote controller, with the list of its checksums. */
const folder = join(import.meta.dirname, '..', 'dist', 'bundle');
rmSync(folder, { recursive: true, force: true });
await makeBundle(folder);
console.log(folder);
