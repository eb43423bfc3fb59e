import { define } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'

/** The stored response has a part that cannot be written in the wanted form. */
export class UnconvertibleError extends Error {
  override readonly name = 'UnconvertibleError'
}

/** One event of a stream: name and data. */
export interface StreamEvent {
  readonly name?: string
  readonly data: JsonObject
}

/** The two forms of a response in one format: buffered, and as a stream. Both have the same content. */
export interface Forms {
  /** Reads the events of a complete stream. Methods throw an UnconvertibleError. */
  collector(): { add(data: JsonObject): void; body(): JsonObject }
  /** The events of a stream with the content of a buffered response. */
  expand(body: JsonObject): Iterable<StreamEvent>
  /** What follows the last event. */
  readonly terminator: string
}

/** A member that grows while a stream is read: texts and lists are joined, other values replace the earlier one. */
export function merge(target: Record<string, unknown>, key: string, value: unknown): void {
  const before = Object.hasOwn(target, key) ? target[key] : undefined
  if (value === null && before !== undefined) return
  if (typeof value === 'string' && typeof before === 'string') define(target, key, before + value)
  else if (Array.isArray(value) && Array.isArray(before)) for (const item of value as unknown[]) before.push(item)
  else define(target, key, Array.isArray(value) ? value.slice() : value)
}
