import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runInProcess } from '../../test/support/cli-world.ts';
import { aServiceView } from '../../test/support/views.ts';
import { withTempHome } from '../../test/support/temp-home.ts';

const file = `
service: {readiness_probe: {path: /, headers: {a: "Bearer $TOKEN", b: $KEY}}}
resources: {ports: 8080}
secrets: {KEY: pa$word}
run: serve
`;

test('a probe that sends a variable without a value is warned about; no value is shown', async () => {
  await withTempHome(async (cwd) => {
    writeFileSync(join(cwd, 'service.yaml'), file);
    const routes = { createService: () => ({ service: aServiceView() }) };
    const { code, stderr } = await runInProcess(['serve', 'up', 'service.yaml', '--no-wait'], { routes, cwd });
    expect(code).toBe(0);
    expect(stderr).toContain('Warning: The readiness probe has $TOKEN; it is sent unchanged, because envs and secrets do not declare it.');
    expect(stderr).not.toContain('$word');
  });
});
