import { expect, test } from 'vitest';
import { serveHealth, type ControllerRole } from './health-server.ts';

test('a standby is as healthy as a leader; a stopping controller is not ready', async () => {
  let role: ControllerRole = 'standby';
  const health = await serveHealth(0, () => role);
  const ask = async (path: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${health.port}${path}`);
    return `${response.status} ${(await response.text()).trim()}`;
  };
  try {
    expect(await ask('/healthz')).toBe('200 {"role":"standby"}');
    expect(await ask('/readyz')).toBe('200 {"role":"standby"}');
    role = 'leader';
    expect(await ask('/healthz')).toBe('200 {"role":"leader"}');
    role = 'stopping';
    expect(await ask('/healthz')).toBe('200 {"role":"stopping"}');
    expect(await ask('/readyz')).toBe('503 {"role":"stopping"}');
    expect(await ask('/other')).toBe('404 {"role":"stopping"}');
  } finally {
    health.close();
  }
});
