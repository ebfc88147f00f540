import { expect, test } from 'vitest';
import type { Behaviour } from '../support/faulty-replica/behaviour.ts';
import { printFigures, spread } from '../support/figures.ts';
import { latencies, tally, Traffic, type Outcome } from '../support/traffic.ts';
import { attemptsLogged, countsAtZero, executions, withFaultyService } from './support.ts';

const fickle: Behaviour = { type: 'fickle', share: 0.3, withinMs: 4 };
const requests = 100_000;

const isOk = ({ status, error }: Outcome): boolean => status === 200 && error === undefined;

test('replicas that close idle connections at random cause no error and no double POST', async () => {
  await withFaultyService([fickle, fickle, fickle, fickle], async (balancer, replicas) => {
    const traffic = new Traffic(balancer.url, 32);
    await traffic.sendMany(requests, 32, (index) => (index % 3 === 0 ? { method: 'POST', body: 'x' } : {}));
    const stats = await countsAtZero(balancer);
    const times = executions(replicas);
    const attempts = await attemptsLogged(balancer, requests);
    const accepted = (await Promise.all(replicas.map((replica) => replica.status()))).reduce((sum, status) => sum + status.accepted, 0);
    printFigures('idle connections closed at random', {
      outcomes: JSON.stringify(tally(traffic.outcomes)),
      'attempts per request': attempts / requests,
      'requests per connection': requests / accepted,
      'ms of all': spread(latencies(traffic.outcomes)),
    });
    traffic.close();
    expect(traffic.outcomes.filter((outcome) => !isOk(outcome))).toEqual([]);
    expect(traffic.outcomes.filter(({ id, method }) => method === 'POST' && times.get(id) !== 1)).toEqual([]);
    expect(stats.errorsTotal).toBe(0);
    // On a loaded machine a replica may take more than a second for a request.
    expect(balancer.link.of('suspect').filter(({ reason }) => reason !== 'timeout')).toEqual([]);
  });
});
