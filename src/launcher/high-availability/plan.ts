import { hoursPerMonth } from '../../domain/placement/plan.ts';
import { readControllerRecord } from '../controller-record.ts';
import { planOfRecorded, type ControllerPlan } from '../controller-plan.ts';
import { requestedResourcesOf } from '../remote-controller.ts';
import { isThere } from './apply.ts';
import { designOf } from './design.ts';
import { describePods, keyFor, prepare, siteOf, type HighAvailabilityDeps } from './high-availability.ts';
import { outsideHint } from './status.ts';

/**
 * Throws SVC_NEEDS_KUBERNETES without a configured Kubernetes cluster, and SVC_NO_CONTROLLER_IMAGE without an image.
 * Does not throw when a controller exists. Makes no call beyond checking whether Kubernetes clusters can be used.
 */
export async function preflightInCluster(deps: HighAvailabilityDeps): Promise<void> {
  const record = readControllerRecord(deps.paths.controllerRecord);
  if (record !== undefined && record.machineId !== null) return;
  const site = await siteOf(deps);
  designOf(await deps.config(), site, { key: '', policyVersion: 'policy/v1', outsideHost: undefined });
}

/** The existing controller, or what the next service would create. Changes nothing. */
export async function planInCluster(deps: HighAvailabilityDeps): Promise<ControllerPlan> {
  const { paths, signal } = deps;
  const record = readControllerRecord(paths.controllerRecord);
  if (record !== undefined && record.machineId !== null && record.machine !== null) {
    const isAsRequested = requestedResourcesOf(await deps.config()) === record.requestedResources;
    const note = 'serve.controller has changed; to make the controller in the cluster so as well: svc controller upgrade';
    return planOfRecorded(record.machine, isAsRequested ? null : note);
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
    machine: { provider: 'kubernetes', region: site.context, zone: null, instanceType: describePods(design) },
    hourlyUsd: design.hourlyUsd,
    monthlyUsd: design.hourlyUsd * hoursPerMonth,
    isNew: !(await isThere(site, key, { api, signal })),
    given: given.given,
    note: notes.length === 0 ? null : notes.join(' '),
  };
}
