import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/** `output` is empty when it was shown directly. */
interface Outcome {
  readonly name: string;
  readonly isOk: boolean;
  readonly output: string;
}

async function runScript(name: string, isShown: boolean): Promise<Outcome> {
  const child = spawn('npm', ['run', name], { stdio: ['ignore', isShown ? 'inherit' : 'pipe', isShown ? 'inherit' : 'pipe'] });
  const ended = new Promise<boolean>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code === 0));
  });
  const [out, errors, isOk] = await Promise.all([child.stdout ? text(child.stdout) : '', child.stderr ? text(child.stderr) : '', ended]);
  return { name, isOk, output: out + errors };
}

/** `npm test`: type check and lint beside the tests, which leave processor time. Their output comes at the end. */
const outcomes = await Promise.all([runScript('test:unit', true), runScript('typecheck', false), runScript('lint', false)]);
for (const { output } of outcomes) if (output !== '') process.stdout.write(output);
const failed = outcomes.filter(({ isOk }) => !isOk).map(({ name }) => name);
if (failed.length > 0) {
  process.stderr.write(`Failed: ${failed.join(', ')}\n`);
  process.exitCode = 1;
}
