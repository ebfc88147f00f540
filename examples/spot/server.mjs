// Answers each request after 0.2 s with the number of its replica: requests are under way when a replica ends.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const server = createServer(async (request, response) => {
  // The health probe need not wait.
  if (request.url !== '/') await sleep(200);
  response.end(`replica ${process.env.SVC_REPLICA_ID}\n`);
});
server.listen(8080, () => console.log('listening on port 8080'));

// svc asks a replica to end with SIGTERM: the requests that it has are answered first.
process.once('SIGTERM', () => server.close());
