/** Receives the fields of one record in order. Implementations write log lines or protobuf messages. */
export interface FieldSink {
  /** A value made by the gateway that needs no quotes. */
  plain(name: string, value: string | number): void
  /** A value from a client or an upstream. */
  foreign(name: string, value: string): void
  /** A text for human readers; always quoted. */
  quoted(name: string, value: string): void
  /** A field from an expression: name and value may be anything. */
  added(name: string, value: string | number | boolean): void
}
