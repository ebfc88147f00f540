import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { IntentLog } from './intent-log.ts';

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

test.for(['', '.json'])("an intent is visible to every process until it is removed (file names end in '%s')", async (ending) => {
  await withTempHome((home) => {
    const open = (): IntentLog<string> => new IntentLog({ dir: join(home, 'launches'), ending, read: text });
    const intents = open();
    expect([intents.names(), intents.get('a')]).toEqual([[], undefined]);
    intents.record('a/../b', 'one');
    intents.record('a/../b', 'two');
    intents.record('c', 'three');
    expect(open().names().toSorted()).toEqual(['a/../b', 'c']);
    expect(open().list().toSorted()).toEqual(['three', 'two']);
    open().forget('a/../b');
    open().forget('a/../b');
    expect([intents.get('a/../b'), intents.get('c'), intents.names()]).toEqual([undefined, 'three', ['c']]);
  });
});

test('unreadable intents and files that are half written count as absent', async () => {
  await withTempHome((home) => {
    mkdirSync(join(home, 'launches'));
    for (const [name, content] of [
      ['broken', '{'],
      ['other', '5'],
      ['whole', '"text"'],
      ['whole.7.ab.tmp', '"half"'],
    ] as const)
      writeFileSync(join(home, 'launches', name), content);
    const intents = new IntentLog({ dir: join(home, 'launches'), read: text });
    expect(intents.list()).toEqual(['text']);
    expect(intents.names().toSorted()).toEqual(['broken', 'other', 'whole']);
  });
});
