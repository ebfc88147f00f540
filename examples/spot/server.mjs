// Answers each request after 0.2 s with the number of its replica: requests are under way when a replica ends.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  if (request.url === '/') return response.end('ok\n');
  setTimeout(() => response.end(`replica ${process.env.SVC_REPLICA_ID}\n`), 200);
});
server.listen(8080, () => console.log('listening on port 8080'));

// svc asks a replica to end with SIGTERM: the requests that it has are answered first.
process.once('SIGTERM', () => server.close());
