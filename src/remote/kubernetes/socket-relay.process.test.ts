import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type Socket, createServer } from 'node:net';
import { basename, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { needs, pathOf } from '../../../test/support/needs.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { socketRelayCommand } from './socket-relay.ts';

interface Relay {
  readonly send: (body: Buffer) => void;
  readonly end: () => void;
  readonly received: Promise<Buffer>;
  readonly ended: Promise<unknown>;
}

/** Runs the relay in an image that has one of these programs, between two pipes, as a pod has them. */
async function withRelay(program: string, serve: (client: Socket) => void, use: (relay: Relay) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const bin = join(dir, 'bin');
    mkdirSync(bin);
    // Not a link: a version manager's program finds its version by PATH.
    writeFileSync(join(bin, basename(program)), `#!/bin/sh\nPATH='${process.env['PATH']}' exec '${program}' "$@"\n`, { mode: 0o755 });
    const socket = join(dir, 's');
    const clients = new Set<Socket>();
    const server = createServer((client) => {
      clients.add(client.on('error', () => undefined));
      serve(client);
    }).listen(socket);
    await once(server, 'listening');
    const [sh, ...args] = socketRelayCommand(socket);
    // Node.js gives its children sockets; cat makes pipes of them.
    const run = spawn('/bin/bash', ['-c', 'exec < <(cat) > >(cat); PATH=$0 exec "$@"', bin, sh ?? '', ...args], { stdio: 'pipe' });
    const ended = once(run, 'exit');
    run.stdin.on('error', () => undefined);
    try {
      await use({
        send: (body) => run.stdin.write(body),
        end: () => run.stdin.end(),
        received: buffer(run.stdout),
        ended,
      });
    } finally {
      for (const client of clients) client.destroy();
      server.close();
      run.stdin.end();
      run.kill();
    }
  });
}

function testRelay(program: string): void {
  test('a relay to a Unix socket carries a large body that is echoed while it is sent', async () => {
    const body = Buffer.alloc(8_000_000, 'relay ');
    let left = body.length;
    await withRelay(
      program,
      (client) => {
        client.on('data', (data) => {
          left -= data.length;
          client.write(data);
          if (left === 0) client.end();
        });
      },
      async ({ send, received }) => {
        send(body);
        expect((await received).equals(body)).toBe(true);
      },
    );
  });

  test('a relay to a Unix socket ends when the program closes the connection', async () => {
    await withRelay(
      program,
      (client) => client.end('bye'),
      async ({ received, ended }) => {
        expect((await received).toString()).toBe('bye');
        await ended;
      },
    );
  });

  test('a relay to a Unix socket ends the connection when the caller has gone', async () => {
    let closed = Promise.resolve();
    await withRelay(
      program,
      (client) => {
        closed = new Promise((resolve) => client.once('end', () => resolve()));
        client.write('hello');
        client.resume();
      },
      async ({ send, end, ended }) => {
        send(Buffer.from('some'));
        end();
        await closed;
        expect(await ended).toBeDefined();
      },
    );
  });
}

describe('with node', () => {
  testRelay(process.execPath);
});
for (const tool of ['python3', 'perl'] as const) needs(tool, () => testRelay(pathOf(tool) ?? ''));
