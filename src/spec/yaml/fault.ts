/** Something wrong at an offset of a file, before it is known how to show it. */
export interface Fault {
  readonly at: number;
  readonly message: string;
  readonly hint?: string;
}
