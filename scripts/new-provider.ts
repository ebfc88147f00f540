import { join } from 'node:path';
import { messageOf } from '../src/shared/errors.ts';
import { writeNewProvider } from './new-provider/generate.ts';

/** `npm run new:provider -- NAME`: generates a provider's files. docs/internals/providers.md has the next steps. */
const [name, ...more] = process.argv.slice(2);

if (name === undefined || more.length > 0) {
  console.error('Run: npm run new:provider -- NAME');
  process.exitCode = 2;
} else {
  try {
    for (const path of writeNewProvider(join(import.meta.dirname, '..'), name)) console.log(`written: ${path}`);
    console.log(`Go on with src/providers/${name}/client.ts; docs/internals/providers.md is the guide.`);
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}
