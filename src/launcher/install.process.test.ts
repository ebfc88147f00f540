import { existsSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aLocalRemote } from '../../test/support/local-remote.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { homePaths } from '../shared/paths.ts';
import { controllerHome, installController, startController, stopController, type Installation } from './install.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const what: Installation = {
  host: {
    key: 'c0ffee00',
    publicHost: '127.0.0.1',
    addresses: [],
    machine: { provider: 'ssh', region: 'rack', zone: 'a', instanceType: '4x CPU', hourlyUsd: 0 },
    whenIdle: 'exit',
  },
  files: [{ path: 'config.yaml', content: 'allowed_clouds: [local]\n' }],
  environment: { SVC_SHOWN: "it's" },
};

test('an installation copies Node.js, program and settings, and skips existing files', async () => {
  await withTempHome(async (home) => {
    const { signal } = new AbortController();
    const remote = aLocalRemote(join(home, 'machine'));
    const steps: string[] = [];
    const deps = { paths: homePaths(join(home, 'client'), 0), signal, onStep: (text: string) => void steps.push(text) };
    const fingerprint = await installController(remote, what, deps);
    const dir = join(home, 'machine', 'controller');
    expect(readlinkSync(join(dir, 'current'))).toBe(`versions/${fingerprint}`);
    expect(readFileSync(join(dir, 'settings'), 'utf8')).toBe("export SVC_SHOWN='it'\\''s'\n");
    expect(statSync(join(dir, 'settings')).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(join(dir, 'home', 'host.json'), 'utf8'))).toEqual(what.host);
    try {
      await startController(remote, signal);
      const { runtimeDir } = homePaths(controllerHome(remote), process.getuid?.() ?? 0);
      expect(await waitFor('the controller', () => existsSync(join(runtimeDir, 'controller.sock')))).toBe(true);
      steps.length = 0;
      await installController(remote, what, deps);
      expect(steps.some((step) => step.includes('Node.js'))).toBe(false);
    } finally {
      await stopController(remote, signal);
    }
    expect(existsSync(join(dir, 'supervisor'))).toBe(false);
  });
});
