import { expect, test } from 'vitest';
import type { ProxiedServiceState } from './edge-proxy.ts';
import { judgeEndpoint, silentProxiesMs, type EndpointAtProxy } from './proxied-endpoint.ts';

const at = (...states: readonly (ProxiedServiceState | undefined)[]): readonly EndpointAtProxy[] =>
  states.map((state, index) => ({ proxy: `host-${index + 1}`, state }));

test('one edge proxy that serves is enough, regardless of the others', () => {
  expect(judgeEndpoint(at('failing', 'listening', undefined), 30_001, silentProxiesMs)).toEqual({ served: true });
});

test('while an edge proxy starts, the verdict is unknown', () => {
  expect(judgeEndpoint(at('failing', 'starting', 'port-busy'), 30_001, silentProxiesMs)).toEqual({ served: 'unknown' });
});

test('when all answering edge proxies fail, the reason names them', () => {
  expect(judgeEndpoint(at('failing', 'failing', undefined), 30_001, 0)).toEqual({
    served: false,
    why: 'Its balancer keeps dying at host-1, host-2; it is started again.',
  });
  expect(judgeEndpoint(at('failing', 'port-busy'), 30_001, 0)).toEqual({
    served: false,
    why: 'Port 30001 of its endpoint is in use by another program at host-2; it is tried again.',
  });
});

test('silent edge proxies are reported after a wait', () => {
  expect(judgeEndpoint(at(undefined), 30_001, silentProxiesMs - 1)).toEqual({ served: 'unknown' });
  expect(judgeEndpoint(at(undefined, undefined), 30_001, silentProxiesMs)).toEqual({
    served: false,
    why: 'None of its edge proxies answers (host-1, host-2); the controller keeps searching for them.',
  });
  expect(judgeEndpoint([], 30_001, silentProxiesMs)).toEqual({
    served: false,
    why: 'There is no edge proxy; the controller keeps searching for them.',
  });
});
