import { assertMachineId, type MachineId, type Provider } from '../../src/providers/provider.ts';
import { goodCheck } from './places.ts';

/** A machine's id. */
export function idOf(text: string): MachineId {
  assertMachineId(text);
  return text;
}

const notUsed = (): never => {
  throw new Error('not used here');
};

/** A place of which only the given calls may be made; it has no machines. */
export function aStubPlace(given: Partial<Provider> = {}): Provider {
  return {
    name: 'stub',
    capabilities: { spot: false, stopResume: false, customImages: false, openPorts: false, multiNode: false, gpus: false },
    check: () => Promise.resolve(goodCheck),
    offers: notUsed,
    create: notUsed,
    inspect: notUsed,
    destroy: () => Promise.resolve(),
    list: () => Promise.resolve([]),
    remote: notUsed,
    stop: notUsed,
    start: notUsed,
    release: notUsed,
    ...given,
  };
}
