/** Somebody pressed Ctrl-C where it is read as a key, as in a question. Ends a command as the signal does. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}
