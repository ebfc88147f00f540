import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { localPods } from '../../../test/support/local-pods.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { repeatingBootCommand } from '../session/session-script.ts';
import { KeptShell, KeptShells, type TextRequest } from './kept-shells.ts';

const request = (script: string): TextRequest => ({
  argv: ['sh', '-c', script],
  env: {},
  text: '',
  onStdout: () => undefined,
  onStderr: () => undefined,
});

test('a shell that is busy at close ends after its current script', async () => {
  const { api } = localPods();
  const clock = new FakeClock();
  const opened: KeptShell[] = [];
  const shells = new KeptShells(async () => {
    const shell = new KeptShell(await api.exec({ namespace: 'n', name: 'p' }, repeatingBootCommand), clock);
    opened.push(shell);
    return shell;
  }, clock);
  await withTempHome(async (dir) => {
    const running = shells.run(request(`touch '${dir}/runs'; while [ ! -e '${dir}/go' ]; do sleep 0.02; done; exit 3`));
    await waitFor('the shell to be busy', () => existsSync(join(dir, 'runs')));
    shells.close();
    writeFileSync(join(dir, 'go'), '');
    expect(await running).toMatchObject({ how: 'ended', exitCode: 3 });
    await waitFor('it to be over', () => opened.every(({ isOver }) => isOver));
    expect(clock.pendingTimers).toBe(0);
  });
});
