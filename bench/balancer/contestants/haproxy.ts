import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant, ProxyOptions } from '../contestant.ts';
import { freePorts, startProgram, untilListening } from '../processes.ts';

/** HAProxy on one thread, without an access log: it can log only to syslog or a pipe. Its figures exclude that work. */
export const haproxy: Contestant = {
  name: 'haproxy',
  async start(options) {
    const [port = 0] = await freePorts(1);
    const path = join(options.dir, 'haproxy.cfg');
    writeFileSync(path, configuration(port, options));
    const program = startProgram('haproxy', ['-db', '-f', path]);
    await untilListening(port, program);
    return { port, pid: program.pid, stop: () => program.stop() };
  },
};

function configuration(port: number, { replicaPorts, isForStreams, maxConnections }: ProxyOptions): string {
  const servers = replicaPorts.map((replica, index) => `  server r${index + 1} 127.0.0.1:${replica}`);
  return `global
  nbthread 1
  maxconn ${maxConnections}
defaults
  mode http
  maxconn ${maxConnections}
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout http-request 10s
  timeout http-keep-alive 75s
  option http-keep-alive
  option forwardfor
  ${isForStreams ? 'option http-no-delay' : ''}
frontend endpoint
  bind 127.0.0.1:${port}
  default_backend replicas
backend replicas
  balance leastconn
  http-reuse always
${servers.join('\n')}
`;
}
