import { expect, test } from 'vitest';
import type { HostedState } from './balancer-host.ts';
import { judgeEndpoint, silentHostsMs, type EndpointAtHost } from './hosted-endpoint.ts';

const at = (...states: readonly (HostedState | undefined)[]): readonly EndpointAtHost[] =>
  states.map((state, index) => ({ host: `host-${index + 1}`, state }));

test('one host that serves is enough, whatever the others do', () => {
  expect(judgeEndpoint(at('failing', 'listening', undefined), 30_001, silentHostsMs)).toEqual({ served: true });
});

test('while one starts it may come up', () => {
  expect(judgeEndpoint(at('failing', 'starting', 'port-busy'), 30_001, silentHostsMs)).toEqual({ served: 'unknown' });
});

test('when it fails at every host that answers, it is said how and where', () => {
  expect(judgeEndpoint(at('failing', 'failing', undefined), 30_001, 0)).toEqual({
    served: false,
    why: 'Its balancer keeps dying at host-1, host-2; it is started again.',
  });
  expect(judgeEndpoint(at('failing', 'port-busy'), 30_001, 0)).toEqual({
    served: false,
    why: 'Port 30001 of its endpoint is in use by another program at host-2; it is tried again.',
  });
});

test('hosts that do not answer are waited for, and then it is said', () => {
  expect(judgeEndpoint(at(undefined), 30_001, silentHostsMs - 1)).toEqual({ served: 'unknown' });
  expect(judgeEndpoint(at(undefined, undefined), 30_001, silentHostsMs)).toEqual({
    served: false,
    why: 'None of its balancer hosts answers (host-1, host-2); they are looked for all the time.',
  });
  expect(judgeEndpoint([], 30_001, silentHostsMs)).toEqual({
    served: false,
    why: 'There is no balancer host; they are looked for all the time.',
  });
});
