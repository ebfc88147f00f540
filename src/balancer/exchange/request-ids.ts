import { randomHex } from '../../shared/random-hex.ts';

/** Makes ids that no other process makes: a random part for the process, a count for the request. For finding, not for secrets. */
export function createRequestIds(): () => string {
  const prefix = randomHex(12);
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}
