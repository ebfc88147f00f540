import type { ErrorCode } from '../shared/error-codes.ts';
import { SvcError, type ErrorDetails } from '../shared/errors.ts';
import type { RefusalKind, RefusalScope } from '../domain/placement.ts';

const codes: Readonly<Record<RefusalKind, ErrorCode>> = {
  capacity: 'SVC_CAPACITY',
  quota: 'SVC_QUOTA',
  price: 'SVC_PRICE',
  permission: 'SVC_DENIED',
  throttled: 'SVC_THROTTLED',
  'provider-error': 'SVC_PLACE_FAILED',
  setup: 'SVC_REFUSED_THERE',
  unsupported: 'SVC_UNSUPPORTED_THERE',
  'failed-launch': 'SVC_MACHINE_LOST',
};

/** The search tries another offer. The kind (the cause) and the scope decide what it avoids, and for how long. */
export class ProviderRefusal extends SvcError {
  readonly refusal: RefusalKind;
  /** How much of the provider the refusal covers. */
  readonly scope: RefusalScope;

  constructor(refusal: RefusalKind, scope: RefusalScope, message: string, details: ErrorDetails = {}) {
    super(codes[refusal], message, details);
    this.refusal = refusal;
    this.scope = scope;
  }
}
