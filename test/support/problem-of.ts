/** Returns the error of a call; fails when it throws nothing. */
export function problemOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
