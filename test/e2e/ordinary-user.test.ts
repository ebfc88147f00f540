import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';

const ordinaryUid = 1000;

// An ordinary user who runs the tests has seen it all in the other files.
test.skipIf(process.getuid?.() !== 0)('an ordinary user has the same: two replicas, one endpoint, nothing left', async () => {
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
