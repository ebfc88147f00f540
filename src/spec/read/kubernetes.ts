import { defaultConfig, type KubernetesConfig, type KubernetesContextConfig } from '../../domain/config.ts';
import { podConfigProblems, workFolder } from '../../domain/kubernetes/pod-config.ts';
import type { ProviderConfig, Task } from '../../domain/task.ts';
import type { Report } from '../report.ts';
import type { KubernetesContextFields, KubernetesFields } from '../schema/kubernetes.ts';
import type { TaskFields } from '../schema/task.ts';
import type { Path } from '../yaml/node.ts';

/** The section `kubernetes` of the configuration. */
export function readKubernetes(fields: KubernetesFields, report: Report): KubernetesConfig {
  const { allowed_contexts: allowedContexts, context_configs: contexts = {} } = fields;
  const path = ['kubernetes'];
  return {
    ...defaultConfig.kubernetes,
    ...readContext(fields, path, report),
    allowedContexts,
    contexts: Object.fromEntries(
      Object.entries(contexts).map(([name, context]) => [name, readContext(context, [...path, 'context_configs', name], report)]),
    ),
  };
}

/** Reads only the given fields, so that they can override the settings for all contexts. */
function readContext(fields: KubernetesContextFields, path: Path, report: Report): Partial<KubernetesContextConfig> {
  const { price, custom_metadata: metadata, high_availability: availability } = fields;
  const { namespace, image, image_pull_secrets: imagePullSecrets, node_selector: nodeSelector, tolerations, reach } = fields;
  const { provision_timeout: provisionTimeoutSeconds } = fields;
  const podConfig = readPodConfig(fields.pod_config, [...path, 'pod_config'], report);
  return {
    ...(namespace !== undefined && { namespace }),
    ...(image !== undefined && { image: image.replace(/^docker:(?:\/\/)?/, '') }),
    ...(imagePullSecrets !== undefined && { imagePullSecrets }),
    ...(nodeSelector !== undefined && { nodeSelector }),
    ...(tolerations !== undefined && { tolerations }),
    ...(podConfig !== undefined && { podConfig }),
    ...(metadata?.labels !== undefined && { labels: metadata.labels }),
    ...(metadata?.annotations !== undefined && { annotations: metadata.annotations }),
    ...(provisionTimeoutSeconds !== undefined && { provisionTimeoutSeconds }),
    ...(reach !== undefined && { reach }),
    ...(price !== undefined && {
      price: { cpu: price.cpu ?? 0, memoryGb: price.memory_gb ?? 0, accelerators: price.accelerators ?? {} },
    }),
    ...(availability?.storage_class_name !== undefined && { storageClass: availability.storage_class_name }),
    // These can be set to none per context although the settings for all contexts have a value.
    ...('autoscaler' in fields && { autoscaler: fields.autoscaler }),
    ...('remote_identity' in fields && { serviceAccount: fields.remote_identity }),
  };
}

function readPodConfig(
  given: Readonly<Record<string, unknown>> | undefined,
  path: Path,
  report: Report,
): Readonly<Record<string, unknown>> | undefined {
  if (given === undefined) return undefined;
  for (const problem of podConfigProblems(given)) {
    const at = [...path, ...problem.path];
    if (problem.isKey) report.atKey(at, problem.message, problem.hint);
    else report.at(at, problem.message, problem.hint);
  }
  return given;
}

/** The part of a task's `config` that providers apply. */
export function readProviderConfig(config: TaskFields['config'], report: Report): ProviderConfig {
  const { kubernetes } = config ?? {};
  if (kubernetes === undefined) return {};
  const podConfig = readPodConfig(kubernetes.pod_config, ['config', 'kubernetes', 'pod_config'], report);
  const { provision_timeout: provisionTimeoutSeconds } = kubernetes;
  return {
    kubernetes: {
      ...(podConfig !== undefined && { podConfig }),
      ...(provisionTimeoutSeconds !== undefined && { provisionTimeoutSeconds }),
    },
  };
}

/** The section `volumes` of a task: volume names by mount folder. */
export function readVolumes(fields: TaskFields['volumes'], report: Report): Task['volumes'] {
  const volumes: Record<string, string> = {};
  for (const [key, name] of Object.entries(fields ?? {})) {
    const path = ['volumes', key];
    const folder = key.replace(/\/+$/, '');
    if (!folder.startsWith('/') || folder.split('/').includes('..'))
      report.atKey(path, 'the folder of a volume must be an absolute path', 'Write for instance: volumes: {/data: NAME}');
    else if (folder === workFolder || folder.startsWith(`${workFolder}/`))
      report.atKey(path, `${workFolder} is where svc keeps a replica's files`);
    else if (volumes[folder] !== undefined) report.atKey(path, 'two volumes have this folder');
    volumes[folder] = name;
  }
  return volumes;
}
