import { join } from 'node:path';

/** A configuration of nginx with one worker that needs no file outside `dir`; `http` is the content of its http block. */
export function nginxFrame(place: { readonly dir: string; readonly maxConnections: number }, http: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (use) => `  ${use}_temp_path ${join(place.dir, `nginx-${use}`)};`,
  );
  return `# Root's worker would otherwise become a user who may not enter the folder.
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${join(place.dir, 'nginx.pid')};
error_log ${join(place.dir, 'error.log')} warn;
events {
  # Each request takes one on either side, and when few are left nginx closes those of clients that have not asked yet.
  worker_connections ${3 * place.maxConnections};
}
http {
${temporary.join('\n')}
  keepalive_timeout 75s;
  keepalive_requests 100000000;
  tcp_nodelay on;
  # A prompt must not go through a file.
  client_body_buffer_size 128k;
${http}
}
`;
}
