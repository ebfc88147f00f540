import type { ApiClient } from '../api/client.ts';
import { SvcError } from '../shared/errors.ts';

/** Throws SVC_CONTROLLER_BUSY, with their names, while a controller has services or clusters. */
export async function refuseWithServices(api: ApiClient): Promise<void> {
  const services = (await api.call('listServices')).services.map(({ name }) => name);
  const clusters = (await api.call('listClusters')).clusters.map(({ name }) => name);
  const names = [...services, ...clusters];
  if (names.length === 0) return;
  throw new SvcError('SVC_CONTROLLER_BUSY', `The controller still looks after: ${names.join(', ')}.`, {
    hint: 'Take them down first: svc serve down --all; svc down --all',
  });
}
