/** A fault at an offset of a file, before it becomes a problem with a position. */
export interface Fault {
  readonly at: number;
  readonly message: string;
  readonly hint?: string;
}
