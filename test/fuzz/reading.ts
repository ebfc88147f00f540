/** One request or response as a parser read it. Latin-1 text throughout. */
export interface ReadMessage {
  /** `METHOD target` of a request, the status of a response. */
  readonly first: string;
  /** `Name: value`, as received. */
  readonly fields: readonly string[];
  readonly body: string;
  /** Name, value, name, value: trailers that may be forwarded. */
  readonly trailers: readonly string[];
  readonly isComplete: boolean;
}

/** The complete reading of the bytes of one connection. */
export interface Reading {
  readonly messages: readonly ReadMessage[];
  /** Reason why the parser stopped; undefined when it accepted all bytes. */
  readonly refusal: string | undefined;
}
