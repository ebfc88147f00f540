// A web server of a few lines: index.html at /, and at /replica.txt which replica answers.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const pages = {
  '/': ['text/html', readFileSync('index.html')],
  '/replica.txt': ['text/plain', `replica ${process.env.SVC_REPLICA_ID}\n`],
};

const server = createServer((request, response) => {
  const [type, body] = pages[request.url] ?? ['text/plain', 'not found\n'];
  response.writeHead(request.url in pages ? 200 : 404, { 'content-type': type }).end(request.method === 'HEAD' ? undefined : body);
});
server.listen(8080, () => console.log('listening on port 8080'));

// svc asks a replica to end with SIGTERM: the requests that it has are answered first.
process.once('SIGTERM', () => server.close());
