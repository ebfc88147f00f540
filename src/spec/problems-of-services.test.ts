import { expect, test } from 'vitest';
import { readProblemCases } from '../../test/support/problem-cases.ts';
import { problemLine, problemsOf, sourceOf } from '../../test/support/task-text.ts';
import { SvcError } from '../shared/errors.ts';
import { parseTask } from './parse-task.ts';

const cases = readProblemCases(String.raw`
# a path without slash
resources: {ports: 80}
service: {readiness_probe: ▸health}
=> service.readiness_probe: must start with "/" (Write for instance: /health)

# the same in the object
resources: {ports: 80}
service: {readiness_probe: {path: ▸health}}
=> service.readiness_probe.path: must start with "/" (Write for instance: /health)

# a path with a space
resources: {ports: 80}
service: {readiness_probe: ▸/a b}
=> service.readiness_probe: must have only visible ASCII characters, and no "#" (Write others percent-encoded, for instance a space as %20.)

# a probe without path
resources: {ports: 80}
service: {readiness_probe: ▸{timeout_seconds: 3}}
=> service.readiness_probe: needs 'path'

# a misspelt path
resources: {ports: 80}
service: {readiness_probe: {▸pth: /}}
=> service.readiness_probe: unknown field 'pth' (Did you mean 'path'?)

# a probe of another kind
resources: {ports: 80}
service: {readiness_probe: ▸[/]}
=> service.readiness_probe: expected text or a map of fields, found a list

# a negative delay
resources: {ports: 80}
service: {readiness_probe: {path: /, initial_delay_seconds: ▸-1}}
=> service.readiness_probe.initial_delay_seconds: must be at least 0, found the number -1

# a delay that no timer can wait
resources: {ports: 80}
service: {readiness_probe: {path: /, initial_delay_seconds: ▸1_000_000_000}, graceful_termination: ▸99w}
=> service.readiness_probe.initial_delay_seconds: must be at most 2000000, found the number 1_000_000_000
=> service.graceful_termination: must be at most 2000000 seconds

# no timeout
resources: {ports: 80}
service: {readiness_probe: {path: /, timeout_seconds: ▸0}}
=> service.readiness_probe.timeout_seconds: must be greater than 0, found the number 0

# post_data that is not JSON
resources: {ports: 80}
service: {readiness_probe: {path: /, post_data: ▸'{a'}}
=> service.readiness_probe.post_data: is not valid JSON (Write JSON text, or a map in YAML.)

# a header with a number
resources: {ports: 80}
service: {readiness_probe: {path: /, headers: {X: ▸1}}}
=> service.readiness_probe.headers.X: expected text, found the number 1 (Put it in quotes to make it text: "1")

# a header of two lines
resources: {ports: 80}
service: {readiness_probe: {path: /, headers: {X: ▸"a\nb"}}}
=> service.readiness_probe.headers.X: must be one line of Latin-1 text

# a bad header name
resources: {ports: 80}
service: {readiness_probe: {path: /, headers: {▸"a b": x}}}
=> service.readiness_probe.headers: 'a b' is not the name of an HTTP header

# an unknown autoscaler
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: 3, autoscaler: ▸forcast, target_qps_per_replica: 1}}
=> service.replica_policy.autoscaler: must be one of request_rate, concurrency or forecast, found text 'forcast' (Did you mean 'forecast'?)

# concurrency without its target
resources: {ports: 80}
service: {replica_policy: {min_replicas: 2, autoscaler: ▸concurrency}}
=> service.replica_policy.autoscaler: needs target_ongoing_requests_per_replica (Add target_ongoing_requests_per_replica, for instance 2.5.)

# the target of another autoscaler
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: 3, target_qps_per_replica: 1, ▸target_ongoing_requests_per_replica: 3}}
=> service.replica_policy: target_ongoing_requests_per_replica is not used by autoscaler: request_rate (Remove it, or write autoscaler: concurrency or forecast.)

# a delay for the forecast
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: 3, autoscaler: forecast, target_qps_per_replica: 1, ▸upscale_delay_seconds: 3}}
=> service.replica_policy: upscale_delay_seconds is not used by autoscaler: forecast (Remove it, or write autoscaler: request_rate or concurrency.)

# sleep of a service that always has a replica
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: 3, target_qps_per_replica: 1, scale_to_zero: ▸sleep}}
=> service.replica_policy.scale_to_zero: never applies, because min_replicas is 1 (Write min_replicas: 0, or remove scale_to_zero.)

# sleep of a program without HTTP/1.1
resources: {ports: 80}
service: {protocol: h2c, replica_policy: {min_replicas: 0, max_replicas: 3, target_qps_per_replica: 1, scale_to_zero: ▸sleep}}
=> service.replica_policy.scale_to_zero: needs a program that speaks HTTP/1.1 (Remove protocol: h2c, or scale_to_zero.)

# engine metrics for the request rate
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: 3, target_qps_per_replica: 1, ▸metrics_path: /metrics}}
=> service.replica_policy: metrics_path is not used by autoscaler: request_rate (Remove it, or write autoscaler: concurrency or forecast.)

# a forecast for each accelerator
resources: {ports: 80}
service: {load_balancing_policy: instance_aware_least_load, replica_policy: {min_replicas: 1, max_replicas: 3, autoscaler: forecast, target_qps_per_replica: ▸{L4: 1}}}
=> service.replica_policy.target_qps_per_replica: the forecast has one target for all replicas (Write one number, or autoscaler: request_rate.)

# a schedule with a bad cron and time zone
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, schedule: [{cron: ▸0 25 * * *, timezone: ▸Berlin, min_replicas: 2}]}}
=> service.replica_policy.schedule[0].cron: has no valid hour: 25 (Write for instance: 0 8 * * mon-fri)
=> service.replica_policy.schedule[0].timezone: is not the name of a time zone (Write for instance: Europe/Berlin)

# a schedule with bounds that need a target
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, schedule: [{cron: 0 8 * * *, min_replicas: 2, max_replicas: ▸4}, {cron: 0 9 * * *, min_replicas: 2, max_replicas: ▸1}]}}
=> service.replica_policy.schedule[0].max_replicas: min_replicas (2) and max_replicas (4) differ, and there is no target_qps_per_replica to choose between them (Add target_qps_per_replica to replica_policy, or make both equal.)
=> service.replica_policy.schedule[1].max_replicas: max_replicas (1) must not be less than min_replicas (2)

# a price limit of nothing
resources: {ports: 80}
service: {max_hourly_cost: ▸0}
=> service.max_hourly_cost: must be greater than 0, found the number 0

# negative replicas
resources: {ports: 80}
service: {replicas: ▸-1}
=> service.replicas: must be at least 0, found the number -1

# far too many replicas
resources: {ports: 80}
service: {replicas: ▸20000}
=> service.replicas: must be at most 10000, found the number 20000

# replicas twice
resources: {ports: 80}
service: {replicas: 1, ▸replica_policy: {min_replicas: 1}}
=> service: replicas and replica_policy cannot both be given (Use replicas for a fixed number, or replica_policy to follow the load.)

# replicas and workers
resources: {ports: 80}
service: {replicas: 1, ▸workers: 1}
=> service: replicas and workers cannot both be given (They are two names of one field; keep one.)

# a policy without min
resources: {ports: 80}
service: {replica_policy: ▸{max_replicas: 1}}
=> service.replica_policy: needs 'min_replicas'

# max below min
resources: {ports: 80}
service: {replica_policy: {min_replicas: 2, max_replicas: ▸1}}
=> service.replica_policy.max_replicas: max_replicas (1) must not be less than min_replicas (2)

# a range without a target
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: ▸3}}
=> service.replica_policy.max_replicas: min_replicas (1) and max_replicas (3) differ, and there is no target_qps_per_replica to choose between them (Add target_qps_per_replica, for instance 2.5, or make both equal.)

# a target without max
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, ▸target_qps_per_replica: 1}}
=> service.replica_policy: needs max_replicas beside it (Add max_replicas: the most replicas you want to pay for.)

# a target of 0
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: 2, target_qps_per_replica: ▸0}}
=> service.replica_policy.target_qps_per_replica: must be greater than 0, found the number 0

# more on-demand replicas than replicas
resources: {ports: 80, use_spot: true}
service: {replica_policy: {min_replicas: 1, base_ondemand_fallback_replicas: ▸2}}
=> service.replica_policy.base_ondemand_fallback_replicas: base_ondemand_fallback_replicas (2) must not be more than min_replicas (1) (Raise min_replicas, or lower it.)

# an unknown order of a wake
resources: {ports: 80}
service: {replica_policy: {min_replicas: 0, max_replicas: 1, target_qps_per_replica: 1, wake: ▸fast}}
=> service.replica_policy.wake: must be one of cheapest or fastest, found text 'fast'

# early replacement as a number
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, early_replacement: ▸18}}
=> service.replica_policy.early_replacement: expected true or false, found the number 18

# spot settings without spot
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, dynamic_ondemand_fallback: ▸true, spot_placer: ▸Dynamic_Fallback}}
=> service.replica_policy.dynamic_ondemand_fallback: is for spot machines only (Add use_spot: true to resources, or remove it.)
=> service.replica_policy.spot_placer: is for spot machines only (Add use_spot: true to resources, or remove it.)

# a spot placer with several machines
resources: {ports: 80, use_spot: true, accelerators: {L4: 1, T4: 1}}
service: {replica_policy: {min_replicas: 1, spot_placer: ▸dynamic_fallback}}
=> service.replica_policy.spot_placer: with a spot placer the spot alternatives in resources may differ in their location only (Keep one kind of machine, or remove spot_placer.)

# an unknown policy
resources: {ports: 80}
service: {load_balancing_policy: ▸round-robin}
=> service.load_balancing_policy: must be one of round_robin, least_load or instance_aware_least_load, found text 'round-robin' (Did you mean 'round_robin'?)

# a target for each accelerator with a policy without accelerators
resources: {ports: 80}
service: {replica_policy: {min_replicas: 1, max_replicas: 2, target_qps_per_replica: ▸{A100-80GB: 2}}}
=> service.replica_policy.target_qps_per_replica: a target for each accelerator needs load_balancing_policy: instance_aware_least_load

# the policy without such a target
resources: {ports: 80}
service: {load_balancing_policy: ▸instance_aware_least_load, replica_policy: {min_replicas: 1, max_replicas: 2, target_qps_per_replica: 3}}
=> service.load_balancing_policy: instance_aware_least_load needs a target_qps_per_replica for each accelerator (Write for instance: target_qps_per_replica: {L4: 2.5, A100: 10})

# no port
▸service: {replicas: 1}
=> the service has no port (Add the port on which the program answers, for instance: resources: {ports: 8080}, or service: {ports: 8080}.)

# several ports
resources: ▸{ports: [80, 81]}
service: {}
=> resources: several ports are open, and service.ports does not say which one gets the requests (Add the main port to the service, for instance: service: {ports: 8080}.)

# different ports in alternatives
resources: ▸{any_of: [{ports: 80}, {ports: 81}]}
service: {}
=> resources: the alternatives open different ports, and service.ports does not say which one gets the requests (Add the main port to the service, for instance: service: {ports: 8080}.)

# a port in one alternative
resources: ▸{any_of: [{ports: 80}, {}]}
service: {}
=> resources: not all alternatives open the port of the service (Write ports once, outside any_of or ordered.)

# a port that is not opened
resources: {ports: 80}
service: {ports: ▸81}
=> service.ports: the port is not among resources.ports (Add it to resources.ports, or leave resources.ports out.)

# a port out of range
service: {ports: ▸65536}
=> service.ports: must be at most 65535, found the number 65536

# two names for draining
resources: {ports: 80}
service: {graceful_termination: 1, ▸graceful_drain_seconds: 2}
=> service: graceful_termination and graceful_drain_seconds cannot both be given (They are two names of one field; keep one.)

# a bad duration
resources: {ports: 80}
service: {graceful_termination: ▸soon}
=> service.graceful_termination: is not a duration (Write seconds, or for instance 90s, 10m or 1h30m.)

# a bad size
resources: {ports: 80}
service: {load_balancer: {max_body_size: ▸1GiB}}
=> service.load_balancer.max_body_size: is not a size (Write bytes, or for instance 512KB or 16MB.)

# limits of the head beyond their bounds
resources: {ports: 80}
service: {load_balancer: {max_request_line_size: ▸100, max_header_size: ▸2MB, max_header_count: ▸0}}
=> service.load_balancer.max_request_line_size: must be at least 256, found the number 100
=> service.load_balancer.max_header_size: must be at most 1048576 bytes
=> service.load_balancer.max_header_count: must be at least 1, found the number 0

# limits of connections and of the queue beyond their bounds
resources: {ports: 80}
service: {load_balancer: {max_connections: ▸0, queue_size: ▸-1, queue_bytes: ▸0B, queue_timeout_seconds: ▸later, keep_alive_timeout_seconds: ▸-1}}
=> service.load_balancer.max_connections: must be at least 1, found the number 0
=> service.load_balancer.queue_size: must be at least 0, found the number -1
=> service.load_balancer.queue_bytes: is not a size (Write bytes, or for instance 512KB or 16MB.)
=> service.load_balancer.queue_timeout_seconds: is not a duration (Write seconds, or for instance 90s, 10m or 1h30m.)
=> service.load_balancer.keep_alive_timeout_seconds: must be at least 0, found the number -1

# no thread, and too many
resources: {ports: 80}
service: {load_balancer: {threads: ▸0}}
=> service.load_balancer.threads: must be at least 1, found the number 0

# a proxy by its name
resources: {ports: 80}
service: {load_balancer: {trusted_proxies: [10.0.0.0/8, ▸proxy.example, ▸10.0.0.0/33]}}
=> service.load_balancer.trusted_proxies[1]: is neither an address nor a range such as 10.0.0.0/8
=> service.load_balancer.trusted_proxies[2]: is neither an address nor a range such as 10.0.0.0/8

# an endpoint for no client
resources: {ports: 80}
service: {load_balancer: {allow: ▸[]}}
=> service.load_balancer.allow: must not be empty

# metrics on the port of the endpoint
resources: {ports: 80}
service: {load_balancer: {port: 31000, metrics_port: ▸31000}}
=> service.load_balancer.metrics_port: is the port of the endpoint (Choose another port for the metrics.)

# a redirect to TLS without TLS
resources: {ports: 80}
service: {load_balancer: {http_redirect_port: ▸8080}}
=> service.load_balancer.http_redirect_port: needs tls, to which it leads (Add tls to the service, or leave it out.)

# a redirect to itself
resources: {ports: 80}
service: {tls: {keyfile: a, certfile: b}, load_balancer: {port: 8080, http_redirect_port: ▸8080}}
=> service.load_balancer.http_redirect_port: is the port of the endpoint too (Choose another port.)

# an unknown protocol
resources: {ports: 80}
service: {protocol: ▸http2}
=> service.protocol: must be one of auto, http or h2c, found text 'http2' (Did you mean 'http'?)

# the health check of gRPC over HTTP/1.1
resources: {ports: 80}
service: {readiness_probe: ▸/grpc.health.v1.Health/Check}
=> service.readiness_probe: the health check of gRPC needs a service that speaks HTTP/2 (Add to the service: protocol: h2c)

# the health check of gRPC with a body of another kind
resources: {ports: 80}
service: {protocol: h2c, readiness_probe: {path: /grpc.health.v1.Health/Check, post_data: ▸'{}'}}
=> service.readiness_probe.post_data: is not for the health check of gRPC (Remove post_data; the health check of gRPC asks for the whole server.)

# half of tls
resources: {ports: 80}
service: {tls: ▸{keyfile: a}}
=> service.tls: needs 'certfile'

# a version of TLS that is insecure
resources: {ports: 80}
service: {tls: {keyfile: a, certfile: b, min_version: ▸1.1}}
=> service.tls.min_version: expected '1.2' or '1.3', found the number 1.1

# a suite without forward secrecy
resources: {ports: 80}
service: {tls: {keyfile: a, certfile: b, ciphers: [▸AES128-GCM-SHA256]}}
=> service.tls.ciphers[0]: must be one of TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256, ECDHE-ECDSA-AES256-GCM-SHA384, ECDHE-RSA-AES256-GCM-SHA384, ECDHE-ECDSA-CHACHA20-POLY1305 or ECDHE-RSA-CHACHA20-POLY1305, found text 'AES128-GCM-SHA256' (Did you mean 'TLS_AES_128_GCM_SHA256'?)

# suites for one of two accepted versions
resources: {ports: 80}
service: {tls: {keyfile: a, certfile: b, ciphers: ▸[TLS_AES_128_GCM_SHA256]}}
=> service.tls.ciphers: has no suite of TLS 1.2, which clients may use (Set min_version: '1.3', or add for instance ECDHE-RSA-AES128-GCM-SHA256.)

# suites of a version that is not accepted
resources: {ports: 80}
service: {tls: {keyfile: a, certfile: b, min_version: 1.3, ciphers: ▸[ECDHE-RSA-AES128-GCM-SHA256]}}
=> service.tls.ciphers: has no suite of TLS 1.3, which clients may use (Add for instance TLS_AES_128_GCM_SHA256.)

# a service that is a pool
resources: {ports: 80}
service: {}
▸pool: {workers: 1}
=> service and pool cannot both be given (Keep one of the two.)
`);

test.each(cases)('rejected: $about', ({ source, problems }) => {
  expect(problemsOf(source)).toEqual(problems);
});

test.each([
  ['is missing', 'name: x\nservice: {ports: 80}\n', '2:1'],
  ['is nothing', 'service: {ports: 80}\nrun:\n', '2:1'],
  ['is blank', 'service: {ports: 80}\nrun: "  "\n', '2:1'],
])('a service whose run %s has no program', (_about, source, position) => {
  expect(rawProblemsOf(source)).toEqual([
    `${position} the service has no program: run is missing or empty (Add the command that starts the server, for instance: run: python3 -m http.server 8080)`,
  ]);
});

/** As `problemsOf`, but does not add a program to a service without one. */
function rawProblemsOf(source: string): readonly string[] {
  try {
    parseTask(sourceOf(source));
  } catch (error: unknown) {
    if (error instanceof SvcError) return error.problems.map(problemLine);
    throw error;
  }
  return [];
}

test('a pool needs no run, and an invalid run is reported once', () => {
  expect(rawProblemsOf('service: {pool: {workers: 1}}\n')).toEqual([]);
  expect(problemsOf('service: {ports: 80}\nrun: [x]\n')).toEqual(['2:6 run: expected text, found a list']);
});
