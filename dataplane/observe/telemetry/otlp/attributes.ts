import type { FieldSink } from '../field-sink.ts'
import { redactValue } from '../redact.ts'
import { ProtoWriter } from './writer.ts'

/** Bounds the cache of encoded names, because flattened maps may have any. */
const MAX_KEYS = 1000
const keys = new Map<string, Buffer>()

/** Field 1 of a KeyValue, encoded. */
function encodeKey(name: string): Buffer {
  let key = keys.get(name)
  if (key !== undefined) return key
  const writer = new ProtoWriter(name.length * 3 + 8)
  writer.stringField(0x0a, name)
  key = writer.bytes
  if (keys.size < MAX_KEYS) keys.set(name, key)
  return key
}

/** Writes fields as repeated KeyValue messages (opentelemetry.proto.common.v1) of the field with that tag. */
export class AttributeSink implements FieldSink {
  readonly #writer: ProtoWriter
  readonly #tag: number
  readonly #omitted: string | undefined
  /** Value of the field `span.name`, if there is one. */
  spanName: string | undefined

  /** `omitted` is the name of a field to skip. */
  constructor(writer: ProtoWriter, tag: number, omitted?: string) {
    this.#writer = writer
    this.#tag = tag
    this.#omitted = omitted
  }

  plain(name: string, value: string | number): void {
    if (typeof value === 'number') this.#writer.numberAttribute(this.#tag, encodeKey(name), value)
    else this.#writer.textAttribute(this.#tag, encodeKey(name), value)
  }

  foreign(name: string, value: string): void {
    this.#writer.textAttribute(this.#tag, encodeKey(name), redactValue(value))
  }

  quoted(name: string, value: string): void {
    if (name !== this.#omitted) this.#writer.textAttribute(this.#tag, encodeKey(name), redactValue(value))
  }

  added(name: string, value: string | number | boolean): void {
    if (name === 'span.name') this.spanName = redactValue(String(value))
    if (typeof value === 'boolean') this.#writer.booleanAttribute(this.#tag, encodeKey(name), value)
    else if (typeof value === 'string') this.foreign(name, value)
    else this.plain(name, value)
  }
}
