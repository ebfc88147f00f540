import { expect, test } from 'vitest';
import { balancerConfig } from '../../../test/support/balancer.ts';
import {
  expectedWait,
  firstByteTimeout,
  noReadyReplica,
  queueFull,
  queueTimeout,
  replicaBrokeProtocol,
  replicaLost,
  replicaUnresponsive,
  uploadTimeout,
} from './balancer-responses.ts';

const config = balancerConfig('/nowhere');
const provisioning = { phase: 'provisioning', readyAt: 100_000 } as const;

test('a reply names the phase and the expected time, and Retry-After follows it', () => {
  const wait = expectedWait(provisioning, 80_500);
  expect(noReadyReplica(config, wait)).toMatchObject({
    status: 503,
    message: 'No replica of service chat is ready: a replica is being provisioned and should be ready in about 20 s.',
    retryAfter: 20,
  });
  expect(queueFull(config, wait)).toMatchObject({ status: 503, code: 'queue_full', retryAfter: 20 });
});

test('Retry-After of an expected time is at most two minutes', () => {
  expect(noReadyReplica(config, expectedWait(provisioning, -900_000)).retryAfter).toBe(120);
});

test('without a known time, a reply names only the phase', () => {
  for (const wait of [expectedWait({ phase: 'loading' }, 5), expectedWait({ phase: 'loading', readyAt: 5 }, 5)])
    expect(noReadyReplica(config, wait)).toMatchObject({
      message: 'No replica of service chat is ready: a replica is loading.',
      retryAfter: 7,
    });
});

test('a reply names the phase of a replica that wakes up', () => {
  expect(expectedWait({ phase: 'waking' }, 5)).toEqual({ text: 'a replica is waking up', seconds: undefined });
});

test('replies name no commands, because the public reads them', () => {
  expect(expectedWait(undefined, 0)).toBeUndefined();
  expect(noReadyReplica(config).message).toBe('No replica of service chat is ready.');
  const fromZero = { ...config, queue: { ...config.queue, fromZero: true } };
  const replies = [
    queueFull(config, undefined),
    queueTimeout(fromZero, noReadyReplica(fromZero), undefined),
    replicaLost(config),
    replicaBrokeProtocol(config, 'bad_chunk'),
    firstByteTimeout(config),
    replicaUnresponsive(config),
    uploadTimeout(config),
  ];
  for (const { message } of replies) expect(message).not.toMatch(/\bsvc\b/);
});

test('a queue timeout has Retry-After only with an expected replica', () => {
  const fromZero = { ...config, queue: { ...config.queue, fromZero: true } };
  const otherwise = noReadyReplica(fromZero);
  expect(queueTimeout(fromZero, otherwise, expectedWait(provisioning, 99_000))).toMatchObject({ status: 504, retryAfter: 1 });
  expect(queueTimeout(fromZero, otherwise, undefined)).not.toHaveProperty('retryAfter');
});
