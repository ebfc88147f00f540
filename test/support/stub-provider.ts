import { assertMachineId, type MachineId, type Provider } from '../../src/providers/provider.ts';
import { goodCheck } from './providers.ts';

/** A machine's id. */
export function idOf(text: string): MachineId {
  assertMachineId(text);
  return text;
}

const notUsed = (): never => {
  throw new Error('not used here');
};

/** A provider on which only the given calls may be made; it has no machines. */
export function aStubProvider(given: Partial<Provider> = {}): Provider {
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
    release: notUsed,
    ...given,
  };
}
