import { spawn } from 'node:child_process';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { withSupervisedBalancer } from '../../test/support/supervised-balancer.ts';

// Kills or stops a balancer repeatedly at 200 requests/s; README.md explains the figures.
// `node bench/kills/run.ts [kills] [busy processes] [SIGKILL|SIGSTOP]`
const kills = Number(process.argv[2] ?? 20);
const busyProcesses = Number(process.argv[3] ?? 0);
const signal = process.argv[4] === 'SIGSTOP' ? 'SIGSTOP' : 'SIGKILL';
const perSecond = 200;
const pauseMs = 3_000;

const busy = Array.from({ length: busyProcesses }, () => spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));
try {
  await withSupervisedBalancer(async (balancer) => {
    const load = balancer.load(perSecond);
    const waits: number[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      await sleep(pauseMs);
      waits.push(await balancer.replaceBy(signal));
    }
    await sleep(pauseMs);
    const { sent, statuses, failedBefore, failedAfter, latencies } = await load.stop();
    const sorted = waits.toSorted((a, b) => a - b);
    const refused = failedBefore['ECONNREFUSED'] ?? 0;
    const answered = statuses[200] ?? 0;
    const cells = [
      `${kills} × ${signal}`,
      busyProcesses,
      loadavg()[0]?.toFixed(0),
      sent,
      refused,
      sent - refused - answered,
      Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
      Math.round(sorted.at(-1) ?? 0),
      Math.round(latencies.at(-1) ?? 0),
    ];
    process.stdout.write(`| ${cells.join(' | ')} |\n${JSON.stringify({ ...failedBefore, ...failedAfter, ...statuses })}\n`);
  });
} finally {
  for (const one of busy) one.kill('SIGKILL');
}
