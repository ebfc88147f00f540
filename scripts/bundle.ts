import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeBundle } from '../src/launcher/bundle.ts';

/** Writes dist/bundle: what is put onto the machine of a controller elsewhere, with the list of its checksums. */
const folder = join(import.meta.dirname, '..', 'dist', 'bundle');
rmSync(folder, { recursive: true, force: true });
await makeBundle(folder);
console.log(folder);
