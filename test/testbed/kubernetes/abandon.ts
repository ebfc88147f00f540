import { argv } from 'node:process';
import { prepareTestbed } from './prepare.ts';
import { startCluster } from './test-cluster.ts';

// Starts a cluster, tells which, and does nothing for it any more: for the test of what becomes of it.
const nodes = argv[2] === '1' ? 1 : 0;
const { dir, ownIp } = await startCluster(await prepareTestbed(), { nodes });
process.send?.({ dir, ownIp });
