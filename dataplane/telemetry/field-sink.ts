/** Receives the fields of one record in order; writes a line of text, a protobuf message or a list. */
export interface FieldSink {
  /** A value of ours that needs no quotes. */
  plain(name: string, value: string | number): void
  /** A value that the client or an upstream chose. */
  foreign(name: string, value: string): void
  /** A text for people. */
  quoted(name: string, value: string): void
  /** A field that an expression made: nothing about it is known beforehand. */
  added(name: string, value: string | number | boolean): void
}
