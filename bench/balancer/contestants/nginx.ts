import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Contestant, ProxyOptions } from '../contestant.ts';
import { nginxFrame } from '../nginx-frame.ts';
import { childrenOf } from '../process-stats.ts';
import { freePorts, startProgram, untilListening } from '../processes.ts';

/**
 * nginx with one worker, tuned as its documentation advises for a proxy. It keeps connections to replicas, buffers its
 * log and relays events at once.
 */
export const nginx: Contestant = {
  name: 'nginx',
  async start(options) {
    const [port = 0] = await freePorts(1);
    const path = join(options.dir, 'nginx.conf');
    writeFileSync(path, configuration(port, options));
    const program = startProgram('nginx', ['-p', options.dir, '-c', path, '-e', join(options.dir, 'error.log')]);
    await untilListening(port, program);
    // The first process only supervises the worker.
    const worker = await waitFor('the worker of nginx', () => childrenOf(program.pid)[0], { everyMs: 10 });
    return { port, pid: worker, stop: () => program.stop() };
  },
};

function configuration(port: number, options: ProxyOptions): string {
  const servers = options.replicaPorts.map((replica) => `server 127.0.0.1:${replica} max_fails=0;`);
  return nginxFrame(
    options,
    `
  access_log ${join(options.dir, 'access.log')} combined buffer=64k flush=1s;
  upstream replicas {
    least_conn;
    ${servers.join('\n    ')}
    keepalive 512;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_buffering ${options.isForStreams ? 'off' : 'on'};
      proxy_read_timeout 300s;
      proxy_send_timeout 300s;
    }
  }`,
  );
}
