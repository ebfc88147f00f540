/** One request or response as a parser read it. Latin-1 text throughout. */
export interface ReadMessage {
  /** `METHOD target` of a request, the status of a response. */
  readonly first: string;
  /** `Name: value`, as they came. */
  readonly fields: readonly string[];
  readonly body: string;
  /** Name, value, name, value: those that may be passed on. */
  readonly trailers: readonly string[];
  readonly isComplete: boolean;
}

/** Everything that a parser made of the bytes of one connection. */
export interface Reading {
  readonly messages: readonly ReadMessage[];
  /** Why it read no further; undefined when it was content with everything that came. */
  readonly refusal: string | undefined;
}
