import type { ErrorCode } from '../shared/error-codes.ts';
import { SvcError, type ErrorDetails } from '../shared/errors.ts';
import type { RefusalKind, RefusalScope } from '../domain/placement.ts';

/** The code users see for each kind of refusal. */
const codes: Readonly<Record<RefusalKind, ErrorCode>> = {
  capacity: 'SVC_CAPACITY',
  quota: 'SVC_QUOTA',
  price: 'SVC_PRICE',
  permission: 'SVC_DENIED',
  throttled: 'SVC_THROTTLED',
  setup: 'SVC_REFUSED_THERE',
  unsupported: 'SVC_UNSUPPORTED_THERE',
};

/** A place will not give a machine for an offer: another one should be tried, and how long this one is avoided depends on kind and scope. */
export class PlaceRefusal extends SvcError {
  readonly refusal: RefusalKind;
  /** How much of the place the refusal is about. */
  readonly scope: RefusalScope;

  constructor(refusal: RefusalKind, scope: RefusalScope, message: string, details: ErrorDetails = {}) {
    super(codes[refusal], message, details);
    this.refusal = refusal;
    this.scope = scope;
  }
}
