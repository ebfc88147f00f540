import { request } from 'node:http';
import { messageOf, SvcError } from '../shared/errors.ts';

const timeoutMs = 5_000;

/** Metrics of a service's balancer in Prometheus' text format. Throws SVC_ENDPOINT_DOWN when it does not answer. */
export async function readMetrics(service: string, socketPath: string, signal: AbortSignal): Promise<string> {
  try {
    return await get(socketPath, signal);
  } catch (error) {
    throw new SvcError('SVC_ENDPOINT_DOWN', `The process that serves the endpoint of '${service}' does not answer: ${messageOf(error)}`, {
      hint: `Run: svc serve logs ${service} --load-balancer`,
      cause: error,
    });
  }
}

function get(socketPath: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/metrics', signal, timeout: timeoutMs }, (response) => {
      const { statusCode } = response;
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.on('error', reject);
      response.on('end', () => (statusCode === 200 ? resolve(text) : reject(new Error(`HTTP status ${statusCode}`))));
    });
    asked.on('timeout', () => asked.destroy(new Error(`no answer within ${timeoutMs / 1_000} s`)));
    asked.on('error', reject);
    asked.end();
  });
}
