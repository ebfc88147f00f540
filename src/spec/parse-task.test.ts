import { expect, test } from 'vitest';
import { codeOf, parseText, refusalOf } from '../../test/support/task-text.ts';
import { serviceOf } from './parse-task.ts';

test('defaults are filled in', () => {
  expect(parseText('service: {}\nresources: {ports: 8080}\n')).toEqual({
    name: undefined,
    workdir: undefined,
    numNodes: 1,
    resources: {
      order: 'any',
      choices: [
        {
          cloud: undefined,
          region: undefined,
          zone: undefined,
          cpus: undefined,
          memory: undefined,
          accelerator: undefined,
          acceleratorMemory: undefined,
          instanceType: undefined,
          useSpot: false,
          diskSizeGb: 256,
          diskTier: undefined,
          networkTier: undefined,
          ports: [8080],
          imageId: undefined,
          labels: {},
          maxHourlyCost: undefined,
          otherFields: [],
        },
      ],
    },
    fileMounts: [],
    envs: {},
    secrets: {},
    setup: undefined,
    run: 'serve',
    service: {
      readinessProbe: {
        path: '/',
        headers: {},
        postData: undefined,
        initialDelaySeconds: 1200,
        timeoutSeconds: 15,
        intervalSeconds: 10,
        failureThresholdSeconds: 180,
      },
      replicaPolicy: {
        minReplicas: 1,
        maxReplicas: 1,
        numOverprovision: 0,
        targetQpsPerReplica: undefined,
        upscaleDelaySeconds: 300,
        downscaleDelaySeconds: 1200,
        dynamicOndemandFallback: false,
        baseOndemandFallbackReplicas: 0,
        spotPlacer: undefined,
      },
      loadBalancingPolicy: 'least_load',
      replicaPort: 8080,
      tls: undefined,
      protocol: 'auto',
      gracefulTerminationSeconds: 60,
      expose: false,
      loadBalancer: {
        port: undefined,
        firstByteTimeoutSeconds: 300,
        idleTimeoutSeconds: 300,
        maxBodyBytes: undefined,
        retryUnsafe: false,
        exposeReplica: false,
        threads: undefined,
        maxRequestLineBytes: 8_192,
        maxHeaderBytes: 32_768,
        maxHeaderCount: 100,
        maxConnections: undefined,
        maxConnectionsPerReplica: 16_384,
        keepAliveTimeoutSeconds: 75,
        queueSize: 1_000,
        queueBytes: 64 * 2 ** 20,
        queueTimeoutSeconds: undefined,
        trustedProxies: [],
        proxyProtocol: [],
        accessLogAddresses: false,
        metricsPort: undefined,
      },
      update: { mode: 'rolling', surge: 1, maxUnavailable: 0, steps: [5, 25, 50], bakeSeconds: 300 },
    },
    volumes: {},
    providerConfig: {},
    otherFields: [],
  });
});

test('all fields of a service are read', () => {
  const { service } = parseText(`
service:
  readiness_probe:
    path: /v1/models
    post_data: {model: m, n: [1, 2.5, null]}
    headers: {Authorization: Bearer x}
    initial_delay_seconds: 90.5
    timeout_seconds: 3
    endpoint_probe_interval_seconds: 5
    consecutive_failure_threshold_timeout: 60
  replica_policy:
    min_replicas: 0
    max_replicas: 4
    num_overprovision: 1
    early_replacement: false
    target_qps_per_replica: {A100-80GB: 2.5, l4: 1, "tpu-v5e:4": 3, RTX_4090: 2}
    upscale_delay_seconds: 10
    downscale_delay_seconds: 20
  load_balancing_policy: Instance_Aware_Least_Load
  ports: 8000
  tls: {keyfile: key.pem, certfile: ~/cert.pem, client_ca: ca.pem, min_version: 1.3, ciphers: [TLS_AES_128_GCM_SHA256]}
  graceful_termination: 5m
  expose: yes
  load_balancer:
    port: 31000
    stream_timeout_seconds: 100
    idle_timeout_seconds: 2m
    max_body_size: 16MB
    retry_unsafe: true
    expose_replica: true
    threads: 2
    max_request_line_size: 16KB
    max_header_size: 65536
    max_header_count: 200
    max_connections: 5000
    max_connections_per_replica: 50
    keep_alive_timeout_seconds: 1m
    queue_size: 0
    queue_bytes: 1GB
    queue_timeout_seconds: 90.5
    trusted_proxies: [10.0.0.0/8, "::1"]
    proxy_protocol: [10.0.0.7]
    allow: [192.168.0.0/16, fd00::/8]
    access_log_addresses: true
    metrics_port: 9090
    http_redirect_port: 8080
  protocol: H2C
  update: {mode: canary, surge: 25%, max_unavailable: 2, steps: [10, 40], bake_seconds: 2m, session: {cookie: sid}}
`);
  expect(service).toEqual({
    readinessProbe: {
      path: '/v1/models',
      headers: { Authorization: 'Bearer x' },
      postData: '{"model":"m","n":[1,2.5,null]}',
      initialDelaySeconds: 90.5,
      timeoutSeconds: 3,
      intervalSeconds: 5,
      failureThresholdSeconds: 60,
    },
    replicaPolicy: {
      minReplicas: 0,
      maxReplicas: 4,
      numOverprovision: 1,
      earlyReplacement: false,
      targetQpsPerReplica: { 'A100-80GB': 2.5, l4: 1, 'tpu-v5e:4': 3, RTX_4090: 2 },
      upscaleDelaySeconds: 10,
      downscaleDelaySeconds: 20,
      dynamicOndemandFallback: false,
      baseOndemandFallbackReplicas: 0,
      spotPlacer: undefined,
    },
    loadBalancingPolicy: 'instance_aware_least_load',
    replicaPort: 8000,
    tls: {
      keyfile: '/project/key.pem',
      certfile: '/home/me/cert.pem',
      clientCa: '/project/ca.pem',
      minVersion: '1.3',
      ciphers: ['TLS_AES_128_GCM_SHA256'],
    },
    protocol: 'h2c',
    gracefulTerminationSeconds: 300,
    expose: true,
    loadBalancer: {
      port: 31000,
      firstByteTimeoutSeconds: 100,
      idleTimeoutSeconds: 120,
      maxBodyBytes: 16 * 2 ** 20,
      retryUnsafe: true,
      exposeReplica: true,
      threads: 2,
      maxRequestLineBytes: 16_384,
      maxHeaderBytes: 65_536,
      maxHeaderCount: 200,
      maxConnections: 5_000,
      maxConnectionsPerReplica: 50,
      keepAliveTimeoutSeconds: 60,
      queueSize: 0,
      queueBytes: 2 ** 30,
      queueTimeoutSeconds: 90.5,
      trustedProxies: ['10.0.0.0/8', '::1'],
      proxyProtocol: ['10.0.0.7'],
      allow: ['192.168.0.0/16', 'fd00::/8'],
      accessLogAddresses: true,
      metricsPort: 9_090,
      httpRedirectPort: 8_080,
    },
    update: {
      mode: 'canary',
      surge: { percent: 25 },
      maxUnavailable: 2,
      steps: [10, 40],
      bakeSeconds: 120,
      session: { cookie: 'sid' },
    },
  });
});

test.each([
  ['replicas: 3', { minReplicas: 3, maxReplicas: 3 }],
  ['workers: 2', { minReplicas: 2, maxReplicas: 2 }],
  ['replicas: 2.0', { minReplicas: 2 }],
  ['replicas: 0x10', { minReplicas: 16 }],
  ['replica_policy: {min_replicas: 2}', { minReplicas: 2, maxReplicas: 2 }],
  ['replica_policy: {min_replicas: 2, max_replicas: 2}', { minReplicas: 2, maxReplicas: 2 }],
])('the number of replicas from %s', (text, expected) => {
  expect(parseText(`service:\n  ports: 80\n  ${text}\n`).service?.replicaPolicy).toMatchObject(expected);
});

test('the probe may be a path, and post_data may be text kept verbatim', () => {
  expect(parseText('service: {ports: 80, readiness_probe: /h}').service?.readinessProbe.path).toBe('/h');
  const source = `service: {ports: 80, readiness_probe: {path: /, post_data: '{"a":  [1]}'}}`;
  expect(parseText(source).service?.readinessProbe.postData).toBe('{"a":  [1]}');
});

test('empty values at top level, in service and in resources count as absent', () => {
  const task = parseText('name:\nsetup: null\nservice:\n  replicas: ~\n  ports: 80\nresources:\n  cpus:\n  any_of: [{memory: null}]\n');
  expect(task).toMatchObject({ name: undefined, service: { replicaPort: 80, replicaPolicy: { minReplicas: 1 } } });
  expect(parseText('run: x\nservice:\nresources:\nenvs:\n').service).toBeUndefined();
});

test('a service may open more ports than its main port', () => {
  const task = parseText('service: {ports: 9000}\nresources: {ports: [8000-8002, 9000, 8001]}\n');
  expect(task.service?.replicaPort).toBe(9000);
  expect(task.resources.choices[0]?.ports).toEqual([8000, 8001, 8002, 9000]);
});

test('a task without a service is valid, but serviceOf rejects it', () => {
  const task = parseText('run: echo hi\n');
  expect(task.service).toBeUndefined();
  expect(() => serviceOf(task, 'task.yaml')).toThrow(
    expect.objectContaining({ code: 'SVC_INVALID_TASK', message: 'task.yaml has no service section.' }),
  );
});

test('fields for other modules are kept by name', () => {
  const source = `
config: {docker: {run_options: [--privileged]}}
volumes: {/data: disk}
inputs: {"s3://a": 1}
outputs: {"s3://b": 1}
event_callback: echo
_metadata: {a: 1}
secrets: ["secrets:HF_TOKEN"]
pool: {workers: 2}
api_server_access: false
`;
  expect(parseText(source).otherFields).toEqual(['pool', 'inputs', 'outputs', 'event_callback', '_metadata', 'config', 'managed_secrets']);
  expect(parseText('service: {pool: {min_workers: 1, max_workers: 2}}\n')).toMatchObject({ service: undefined, otherFields: ['pool'] });
});

test("paths are relative to the file's folder, and ~ is the home folder", () => {
  const mounts = 'file_mounts:\n  ./data: ./local\n  ~/a/: ~/b\n  /c: /d\n  /e: ../f\n';
  expect(parseText(`workdir: .\n${mounts}`)).toMatchObject({
    workdir: { kind: 'path', path: '/project' },
    fileMounts: [
      { target: 'data', source: { kind: 'path', path: '/project/local' } },
      { target: '~/a', source: { kind: 'path', path: '/home/me/b' } },
      { target: '/c', source: { kind: 'path', path: '/d' } },
      { target: '/e', source: { kind: 'path', path: '/f' } },
    ],
  });
  expect(parseText('workdir: ~').workdir).toBeUndefined();
  expect(parseText('workdir: ~/app').workdir).toEqual({ kind: 'path', path: '/home/me/app' });
  expect(parseText('workdir: a', { workdir: '/elsewhere' }).workdir).toEqual({ kind: 'path', path: '/elsewhere' });
  expect(parseText('workdir: {url: https://git.example/x.git, ref: main}').workdir).toEqual({
    kind: 'git',
    url: 'https://git.example/x.git',
    ref: 'main',
  });
});

test('bucket mounts have an address or a name', () => {
  const source = `
file_mounts:
  /a: s3://bucket/path
  /b: {source: gs://bucket, mode: COPY}
  /c: {name: mine, store: GCS, mode: mount_cached}
  /d: {name: mine, source: ./local}
  /e: https://account.blob.core.windows.net/container
`;
  expect(parseText(source).fileMounts.map((mount) => mount.source)).toEqual([
    { kind: 'bucket', uri: 's3://bucket/path', mode: 'COPY' },
    { kind: 'bucket', uri: 'gs://bucket', mode: 'COPY' },
    { kind: 'bucket', uri: 'gs://mine', mode: 'MOUNT_CACHED' },
    { kind: 'bucket', uri: 'bucket://mine', mode: 'MOUNT' },
    { kind: 'bucket', uri: 'https://account.blob.core.windows.net/container', mode: 'COPY' },
  ]);
});

test('a copy of a local path needs no bucket and has one source', () => {
  const [mount] = parseText('file_mounts:\n  ./a: {source: ./data, mode: COPY, name: mine}\n').fileMounts;
  expect(mount?.source).toEqual({ kind: 'path', path: '/project/data' });
  expect(refusalOf('file_mounts:\n  ./a: {source: [./b, ./c], mode: COPY}\n').problems[0]).toMatchObject({
    message: expect.stringContaining('a copy has one source'),
  });
});

test('a file of more than 1 MiB is rejected', () => {
  expect(refusalOf(`run: ${'x'.repeat(1_048_577)}`)).toMatchObject({
    code: 'SVC_FILE_TOO_BIG',
    message: '/project/service.yaml is larger than 1 MiB, which no task file needs to be.',
  });
  expect(codeOf(`run: ${'ü'.repeat(530_000)}`)).toBe('SVC_FILE_TOO_BIG');
});
