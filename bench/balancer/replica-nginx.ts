import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nginxFrame } from './nginx-frame.ts';
import { freePorts, startProgram, untilListening } from './processes.ts';

/** Replicas that are ready to serve. */
export interface RunningReplicas {
  readonly ports: readonly number[];
  readonly stop: () => Promise<void>;
}

/** The reply to a chat completion, about 500 bytes. */
const completionReply = JSON.stringify({
  id: 'chatcmpl-8c1f0a7be2d94c1f',
  object: 'chat.completion',
  created: 1_767_225_600,
  model: 'meta-llama/Llama-3.1-8B-Instruct',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content:
          'A load balancer spreads requests over several servers, so that none is overloaded and the failure of one goes unnoticed by clients.',
        tool_calls: [],
      },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 42, total_tokens: 71, completion_tokens: 29, prompt_tokens_details: null },
});

/**
 * Starts four replicas that answer at once: one nginx with one worker on four ports. This takes the least CPU time from
 * the proxies on a machine with few cores.
 */
export async function startInstantReplicas(dir: string): Promise<RunningReplicas> {
  const ports = await freePorts(4);
  const path = join(dir, 'replicas.conf');
  const content = `
  access_log off;
  server {
    ${ports.map((port) => `listen 127.0.0.1:${port} backlog=4096;`).join('\n    ')}
    default_type application/json;
    location = /ping { return 200 '{"status":"ok"}'; }
    location = /v1/chat/completions { return 200 '${completionReply}'; }
  }`;
  writeFileSync(path, nginxFrame({ dir, maxConnections: 2_048 }, content));
  const program = startProgram('nginx', ['-p', dir, '-c', path, '-e', join(dir, 'error.log')]);
  await untilListening(ports[0] ?? 0, program);
  return { ports, stop: () => program.stop() };
}
