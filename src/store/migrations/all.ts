import type { Migration } from '../migrate.ts';
import { initial } from './0001-initial.ts';
import { leadershipAndFiles } from './0002-leadership-and-files.ts';
import { databaseIdentity } from './0003-database-identity.ts';
import { eventCauses } from './0004-event-causes.ts';
import { replicaMarkets } from './0005-replica-markets.ts';
import { zoneHistories } from './0006-zone-histories.ts';

/** Every step of the schema, oldest first; the step at index n has version n + 1. */
export const migrations: readonly Migration[] = [initial, leadershipAndFiles, databaseIdentity, eventCauses, replicaMarkets, zoneHistories];
