import { expect, test } from 'vitest';
import { parseText } from '../../test/support/task-text.ts';
import { unsupportedFeatures } from './unsupported.ts';

/** Files as SkyPilot users write them, each with its expected result. They must be accepted unchanged. */

test('a vLLM server on any of several GPUs, probed by a real request', () => {
  const task = parseText(`
# Serve a chat model.
envs:
  MODEL_NAME: my-org/chat-7b-instruct
  MAX_LEN: 131072
  HF_TOKEN: ""  # pass with --env HF_TOKEN

resources:
  accelerators: {L4:4, A100:1, A100-80GB:1, H100}
  ports: 8081
  disk_size: 512
  disk_tier: best
  cpus: 32+

setup: |
  pip install "vllm>=0.8"

run: |
  vllm serve $MODEL_NAME --port 8081 \\
    --tensor-parallel-size $SKYPILOT_NUM_GPUS_PER_NODE --max-model-len $MAX_LEN

service:
  replicas: 2
  readiness_probe:
    path: /v1/chat/completions
    post_data:
      model: $MODEL_NAME
      messages:
        - role: user
          content: "Hello! What is your name?"
      max_tokens: 1
    initial_delay_seconds: 1800
`);
  expect(task.resources.choices.map(({ accelerator }) => `${accelerator?.name}:${accelerator?.count}`)).toEqual([
    'L4:4',
    'A100:1',
    'A100-80GB:1',
    'H100:1',
  ]);
  expect(task.service?.readinessProbe.postData).toBe(
    '{"model":"my-org/chat-7b-instruct","messages":[{"role":"user","content":"Hello! What is your name?"}],"max_tokens":1}',
  );
  expect(task.envs['MAX_LEN']).toBe('131072');
});

test('a TGI container with a GPU, its token a secret', () => {
  const task = parseText(
    `
name: tgi
service:
  readiness_probe: /health
  replica_policy:
    min_replicas: 1
    max_replicas: 3
    target_qps_per_replica: 2.5
    upscale_delay_seconds: 60
    downscale_delay_seconds: 600
resources:
  ports: 8080
  accelerators: A100:1
  image_id: docker:registry.example/text-generation-inference:latest
secrets:
  HF_TOKEN:
run: text-generation-launcher --port 8080 --model-id my-org/model
`,
    { secrets: { HF_TOKEN: 'hf_1' } },
  );
  expect(task.service?.replicaPolicy).toMatchObject({ minReplicas: 1, maxReplicas: 3, targetQpsPerReplica: 2.5 });
  expect(unsupportedFeatures(task).map(({ field }) => field)).toEqual([]);
});

test('spot machines with on-demand fallback in several locations', () => {
  const task = parseText(`
service:
  readiness_probe: {path: /health, initial_delay_seconds: 120}
  replica_policy:
    min_replicas: 2
    max_replicas: 6
    target_qps_per_replica: 5
    base_ondemand_fallback_replicas: 1
    dynamic_ondemand_fallback: true
    spot_placer: dynamic_fallback
    num_overprovision: 1
resources:
  ports: 8081
  cpus: 2+
  use_spot: true
  any_of:
    - cloud: aws
      region: us-east-1
    - cloud: gcp
      region: us-central1
      zone: us-central1-a
run: python3 server.py
`);
  expect(task.resources.choices).toMatchObject([
    { cloud: 'aws', region: 'us-east-1', useSpot: true },
    { cloud: 'gcp', zone: 'us-central1-a', useSpot: true },
  ]);
  expect(task.service?.replicaPolicy).toMatchObject({
    baseOndemandFallbackReplicas: 1,
    dynamicOndemandFallback: true,
    spotPlacer: 'dynamic_fallback',
  });
});

test('alternatives of spot and on-demand machines may be mixed', () => {
  const task = parseText('resources: {ports: 80, any_of: [{use_spot: true}, {infra: aws}]}\nservice: {replicas: 2}');
  expect([task.resources.choices.map(({ useSpot }) => useSpot), unsupportedFeatures(task)]).toEqual([[true, false], []]);
});

test('an order of preference over accelerators and locations', () => {
  const task = parseText(`
resources:
  ports: "8000"
  memory: 32GB+
  ordered:
  - {infra: k8s/on-prem, accelerators: H100}
  - {infra: aws/us-west-2, accelerators: {A100: 1}}
  - infra: gcp
    accelerators: L4:2
    labels: {fallback: "true"}
service:
  readiness_probe: /
  replicas: 1
  load_balancing_policy: round_robin
`);
  expect(task.resources.order).toBe('ordered');
  expect(task.resources.choices.map(({ cloud, accelerator }) => `${cloud} ${accelerator?.name}`)).toEqual([
    'kubernetes H100',
    'aws A100',
    'gcp L4',
  ]);
});

test('a QPS target for each kind of accelerator', () => {
  const task = parseText(`
service:
  readiness_probe: /health
  load_balancing_policy: instance_aware_least_load
  replica_policy:
    min_replicas: 1
    max_replicas: 8
    target_qps_per_replica:
      A100: 10
      "L4:2": 2.5
resources: {ports: 8000, accelerators: [A100, L4:2]}
`);
  expect(task.service?.replicaPolicy.targetQpsPerReplica).toEqual({ A100: 10, 'L4:2': 2.5 });
});

test('buckets and volumes are reported as unsupported; TLS and several nodes are supported', () => {
  const task = parseText(`
service:
  readiness_probe: /
  ports: 8080
  tls: {keyfile: ~/certs/key.pem, certfile: ~/certs/cert.pem}
resources: {ports: [8080, 9090], network_tier: best, autostop: 10}
num_nodes: 2
workdir: {url: https://git.example/app.git, ref: v1}
file_mounts:
  /models: s3://bucket/models
  /out: {name: results, store: gcs, mode: MOUNT}
  ~/config: ./config
volumes: {/cache: cache-volume}
config: {kubernetes: {pod_config: {spec: {runtimeClassName: nvidia}}}}
`);
  expect(unsupportedFeatures(task).map(({ field }) => field)).toEqual(['workdir.url', 'file_mounts./out', 'volumes', 'resources.autostop']);
});

test('a pool of workers over a set of accelerators', () => {
  const task = parseText(`
envs: {BUCKET: embeddings}
resources: {accelerators: {L4, A10G, L40S}}
file_mounts:
  /output:
    name: \${BUCKET}
    mode: MOUNT
pool: {workers: 4}
`);
  expect(task.otherFields).toEqual(['pool']);
  expect(task.resources.choices).toHaveLength(3);
  expect(task.fileMounts[0]?.source).toEqual({ kind: 'bucket', uri: 'bucket://embeddings', mode: 'MOUNT' });
});

test('anchors shared between sections', () => {
  const task = parseText(`
config: {x: &probe {path: /health, timeout_seconds: 5}}
service:
  ports: 80
  readiness_probe: {<<: *probe, initial_delay_seconds: 60}
`);
  expect(task.service?.readinessProbe).toMatchObject({ path: '/health', timeoutSeconds: 5, initialDelaySeconds: 60 });
});
