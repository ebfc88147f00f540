import { argv } from 'node:process';
import { prepareTestbed } from './prepare.ts';
import { startCluster } from './test-cluster.ts';

// Starts a cluster, reports its folder, and never releases it: for the test of the guard.
const nodes = argv[2] === '1' ? 1 : 0;
const { dir, ownIp } = await startCluster(await prepareTestbed(), { nodes });
process.send?.({ dir, ownIp });
