import type { LateRefusal, MachineNotice } from '../provider.ts';
import type { VmStatus } from '../vm/driver.ts';
import type { Instance, SpotInstanceRequest } from './client.ts';
import { asSentence } from '../../shared/text.ts';
import { meaningOf } from './error-table.ts';

type Ended = Pick<Instance, 'StateReason' | 'StateTransitionReason'>;

/** The status of an instance. Source: `StateReason` in the EC2 API reference. */
export function statusOf(instance: Pick<Instance, 'State'> & Ended, region: string): VmStatus {
  switch (instance.State?.Name) {
    case 'running':
      return { state: 'running' };
    case 'stopping':
    case 'stopped':
      return { state: 'stopped' };
    case 'shutting-down':
    case 'terminated':
      return goneStatus(instance, region);
    case 'pending':
    case undefined:
      return { state: 'booting' };
    default:
      return { state: 'booting' };
  }
}

/** Codes of a preempted spot machine, or of a machine that AWS accepted and could not provide. */
const preemptions: ReadonlySet<string> = new Set([
  'Server.SpotInstanceTermination',
  'Server.SpotInstanceShutdown',
  'Server.InsufficientInstanceCapacity',
]);

/** A user or the machine itself ended it: this is no refusal. */
const deletions: ReadonlySet<string> = new Set([
  'Client.UserInitiatedShutdown',
  'Client.UserInitiatedHibernate',
  'Client.InstanceInitiatedShutdown',
  'Client.InstanceTerminated',
]);

const unusable: LateRefusal = { kind: 'setup', scope: 'whole-region' };
const reclaimed: LateRefusal = { kind: 'capacity', scope: 'zone' };

/** Codes with another meaning in a request's error. */
const lateMeanings: ReadonlyMap<string, LateRefusal> = new Map([
  ['Client.InternalError', unusable],
  ['Client.InvalidKMSKey.InvalidState', unusable],
  ['Client.InvalidSnapshot.NotFound', unusable],
  ['Server.SpotInstanceTermination', reclaimed],
  ['Server.SpotInstanceShutdown', reclaimed],
]);

/**
 * EC2 may not use the KMS key of an encrypted disk, or the key is disabled. EC2 says `InvalidState` of a key without the
 * rights too: https://repost.aws/knowledge-center/kms-iam-ec2-permission
 */
const keyTroubles: ReadonlySet<string> = new Set(['Client.InternalError', 'Client.InvalidKMSKey.InvalidState']);

const keyRemedy = (region: string): string =>
  'EC2 cannot use the KMS key that encrypts the disk: the key is disabled, or its policy or yours lacks kms:CreateGrant ' +
  `(docs/clouds/aws.md#encrypted-disks). Find the key with: aws ec2 get-ebs-default-kms-key-id --region ${region}`;

/** Sometimes the code is only in the message. */
const leadingCode = /^(?:Client|Server)\.\w[\w.]*/;

/** EC2 also gives this code for a disk whose key it may not use. Only the message then has the cause's code. */
const vagueCode = 'Server.InternalError';

function goneStatus({ StateReason, StateTransitionReason = '' }: Ended, region: string): Extract<VmStatus, { state: 'gone' }> {
  // The reason from the pending state does not explain the end.
  const { Code = '', Message = '' } = StateReason?.Code === 'pending' ? {} : (StateReason ?? {});
  const said = [Message, StateTransitionReason].find((text) => leadingCode.test(text)) ?? Message;
  const code = Code === '' || Code === vagueCode ? (leadingCode.exec(said)?.[0] ?? Code) : Code;
  const isDeleted = deletions.has(code) || StateTransitionReason.startsWith('User initiated');
  const reason = preemptions.has(code) ? 'preempted' : isDeleted ? 'deleted' : 'unknown';
  const words = wordsOf(code, Message === '' ? said : Message);
  const message = words !== undefined && keyTroubles.has(code) ? `${asSentence(words)} ${keyRemedy(region)}` : words;
  const refusal = lateRefusal(code);
  return { state: 'gone', reason, ...(message !== undefined && { message, mayPass: true }), ...(refusal !== undefined && { refusal }) };
}

/** The meaning for further launches; undefined for unknown codes. */
function lateRefusal(code: string): LateRefusal | undefined {
  const own = lateMeanings.get(code);
  if (own !== undefined || code === '') return own;
  const meaning = meaningOf(code.replace(/^(?:Client|Server)\./, ''), undefined);
  if (!('about' in meaning)) return undefined;
  return { kind: meaning.kind, scope: meaning.about === 'offer' ? 'zone' : meaning.about };
}

/** `CODE: MESSAGE`. AWS begins most of its messages with the code. */
function wordsOf(code: string, message = ''): string | undefined {
  const said = message.trim();
  if (said === '' || said === code) return code === '' ? undefined : code;
  return said.startsWith(code) ? said : `${code}: ${said}`;
}

/** These codes announce the end: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html */
const announcements: ReadonlySet<string> = new Set(['marked-for-termination', 'marked-for-stop']);

/** AWS reclaims a marked machine two minutes after it was marked, ms. */
const graceMs = 120_000;

/** The interruption notice in a spot request. */
export function noticeOf(request: Pick<SpotInstanceRequest, 'Status'>): MachineNotice | undefined {
  const code = request.Status?.Code;
  if (code === undefined || !announcements.has(code)) return undefined;
  const marked = request.Status?.UpdateTime?.getTime();
  return { kind: 'interruption', at: marked === undefined || Number.isNaN(marked) ? undefined : marked + graceMs };
}
