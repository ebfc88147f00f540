import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Loaded with `node --import`: appends the path of every loaded module to the file named by SVC_TEST_MODULES. */
const record = process.env['SVC_TEST_MODULES'];

registerHooks({
  load(url, context, nextLoad) {
    if (record !== undefined && url.startsWith('file:')) appendFileSync(record, `${fileURLToPath(url)}\n`);
    return nextLoad(url, context);
  },
});
