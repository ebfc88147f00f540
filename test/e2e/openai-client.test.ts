import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';

test('the official OpenAI client works through the endpoint, streaming and not', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/openai-like/service.yaml', '-n', 'parrot', '--env', 'WORD_DELAY=0.5']);
    const { endpoint } = await svc.ready('parrot', 2);
    const client = new OpenAI({ baseURL: `${endpoint}/v1`, apiKey: 'any', maxRetries: 0 });
    const asked = { model: 'parrot', messages: [{ role: 'user' as const, content: 'hello there' }] };

    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['parrot']);
    const whole = await client.chat.completions.create(asked);
    expect(whole.choices[0]?.message.content).toMatch(/^You said: hello there \(replica \d+\)$/);

    const startedAt = performance.now();
    const arrivals: number[] = [];
    let said = '';
    let tokens = 0;
    for await (const chunk of await client.chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })) {
      const word = chunk.choices[0]?.delta.content ?? '';
      if (word !== '') arrivals.push(performance.now() - startedAt);
      said += word;
      tokens = chunk.usage?.completion_tokens ?? tokens;
    }
    expect(said).toMatch(/^You said: hello there \(replica \d+\)$/);
    expect(tokens).toBe(6);
    // Six words half a second apart: a buffering balancer would deliver them all at once.
    expect((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThan(600);

    await expect(client.chat.completions.create({ ...asked, model: 'other' })).rejects.toMatchObject({ status: 404 });
    await svc.end();
  });
});

test('a client that disconnects in the middle of a stream frees the replica', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/openai-like/service.yaml', '-n', 'parrot', '--env', 'WORD_DELAY=0.3']);
    const { endpoint } = await svc.ready('parrot', 2);
    const client = new OpenAI({ baseURL: `${endpoint}/v1`, apiKey: 'any', maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'a b c d e f g h i j k l m n o p q r s t u v w x y z' }];
    for (let round = 0; round < 4; round += 1) {
      const stream = await client.chat.completions.create({ model: 'parrot', messages, stream: true });
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    }
    // Leaked in-flight counts would direct all requests to the other replica.
    const replicas = new Set<string>();
    for (let request = 0; request < 4; request += 1) {
      const reply = await client.chat.completions.create({ model: 'parrot', messages: [{ role: 'user', content: 'who' }] });
      replicas.add(reply.choices[0]?.message.content ?? '');
    }
    expect(replicas.size).toBe(2);
    await svc.end();
  });
});
