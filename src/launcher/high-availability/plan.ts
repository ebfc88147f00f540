import { hoursPerMonth } from '../../domain/placement/plan.ts';
import { readControllerRecord } from '../controller-record.ts';
import { planOfRecorded, type ControllerPlan } from '../controller-plan.ts';
import { wishOf } from '../elsewhere.ts';
import { isThere } from './apply.ts';
import { designOf } from './design-of.ts';
import { describePods, keyFor, prepare, siteOf, type HighAvailabilityDeps } from './high-availability.ts';
import { outsideHint } from './status.ts';

/**
 * Throws SVC_NEEDS_KUBERNETES or SVC_NO_CONTROLLER_IMAGE when the configuration leads to no cluster, or names no image, and there is no controller yet.
 * No cluster is asked beyond whether it can be used.
 */
export async function checkWishInCluster(deps: HighAvailabilityDeps): Promise<void> {
  const record = readControllerRecord(deps.paths.controllerRecord);
  if (record !== undefined && record.machineId !== null) return;
  const site = await siteOf(deps);
  designOf(await deps.config(), site, { key: '', policyVersion: 'policy/v1', outsideHost: undefined });
}

/** The controller in a cluster that there is, or the one that the next service would bring up. Nothing is changed. */
export async function planInCluster(deps: HighAvailabilityDeps): Promise<ControllerPlan> {
  const { paths, signal } = deps;
  const record = readControllerRecord(paths.controllerRecord);
  if (record !== undefined && record.machineId !== null && record.place !== null) {
    const isAsWished = wishOf(await deps.config()) === record.wished;
    const note = 'serve.controller has changed; to make the controller in the cluster so as well: svc controller upgrade';
    return planOfRecorded(record.place, isAsWished ? null : note);
  }
  const site = await siteOf(deps);
  const api = deps.openApi(site);
  const key = await keyFor(site, api, signal);
  const { design, given } = await prepare(site, key, deps);
  const hint = outsideHint(site, design.endpointService);
  const notes = [
    ...given.leftOut,
    ...(hint === undefined ? [] : [`Endpoints are inside the cluster; from here they are reached with: ${hint}`]),
  ];
  return {
    place: { provider: 'kubernetes', region: site.context, zone: null, instanceType: describePods(design) },
    hourlyUsd: design.hourlyUsd,
    monthlyUsd: design.hourlyUsd * hoursPerMonth,
    isNew: !(await isThere(site, key, { api, signal })),
    given: given.given,
    note: notes.length === 0 ? null : notes.join(' '),
  };
}
