import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';

const ordinaryUid = 1000;

// For an ordinary user the other files already cover this.
test.skipIf(process.getuid?.() !== 0)('an ordinary user gets two replicas, one endpoint, and nothing left after down', async () => {
  await withSvc(
    async (svc) => {
      await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
      const { endpoint } = await svc.ready('hello', 2);
      const answers = [await (await fetch(`${endpoint}/replica.txt`)).text(), await (await fetch(`${endpoint}/replica.txt`)).text()];
      expect(answers.toSorted()).toEqual(['replica 1\n', 'replica 2\n']);
      expect(await svc.ok(['check'])).toContain('local');
      await svc.end();
    },
    { uid: ordinaryUid },
  );
});
