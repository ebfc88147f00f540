import { cpus, totalmem } from 'node:os';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { serviceLimit } from '../../src/domain/controller-placement.ts';
import { withSvc } from '../support/e2e.ts';

const status = z.object({ controller: z.object({ serviceLimit: z.number() }) });
const idle = 'service: {}\nresources:\n  ports: 8080\nrun: sleep 100000\n';

/** Each service needs two processes: more services than this would only load the machine. */
const affordable = 12;
const tooMany = serviceLimit(cpus().length, totalmem() / 2 ** 30) > affordable;

test.skipIf(tooMany)("a service beyond the controller's limit is refused with the reason", async () => {
  await withSvc(async (svc) => {
    await svc.ok(['controller', 'start']);
    const limit = status.parse(JSON.parse(await svc.ok(['controller', 'status', '--json']))).controller.serviceLimit;
    const file = svc.file('service.yaml', idle);
    for (let count = 1; count <= limit; count += 1) await svc.ok(['serve', 'up', file, '-n', `s${count}`, '--no-wait']);

    const refused = await svc.run(['serve', 'up', file, '-n', 'surplus', '--no-wait']);
    expect([refused.code, /code: (\S+)/.exec(refused.stderr)?.[1]]).toEqual([6, 'SVC_TOO_MANY_SERVICES']);
    expect(refused.stderr).toContain(String(limit));
    expect(refused.stderr).toContain('svc serve down');
    expect(await svc.services()).toHaveLength(limit);

    // Terminating a service frees its slot.
    await svc.ok(['serve', 'down', 's1', '--yes']);
    await svc.ok(['serve', 'up', file, '-n', 'surplus', '--no-wait']);
    await svc.end();
  });
});
