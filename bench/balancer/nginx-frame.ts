import { join } from 'node:path';

/** A configuration of nginx with one worker that needs no file outside `dir`. `http`: content of its http block. */
export function nginxFrame(options: { readonly dir: string; readonly maxConnections: number }, http: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (use) => `  ${use}_temp_path ${join(options.dir, `nginx-${use}`)};`,
  );
  return `# Without this, the worker of a root process runs as a user without access to the folder.
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${join(options.dir, 'nginx.pid')};
error_log ${join(options.dir, 'error.log')} warn;
events {
  # Each request uses two. When few are left, nginx closes connections of clients that have sent no request yet.
  worker_connections ${3 * options.maxConnections};
}
http {
${temporary.join('\n')}
  keepalive_timeout 75s;
  keepalive_requests 100000000;
  tcp_nodelay on;
  # Prompts must stay in memory, not in a file.
  client_body_buffer_size 128k;
${http}
}
`;
}
