import type { ClientFormat, JsonObject, RequestContext, UpstreamFormat } from '../../../common/types.ts'

interface RequestRow {
  readonly from: ClientFormat
  readonly to: UpstreamFormat
  readonly body: JsonObject
  readonly context?: Partial<RequestContext>
  /** The complete converted body. */
  readonly is?: JsonObject
  /** Some members of the converted body; undefined if a member must be absent. */
  readonly has?: JsonObject
  /** Part of the error message. */
  readonly error?: string
}

/** Rows, keyed by a description. */
export type RequestRows = Readonly<Record<string, RequestRow>>

export const hi = { role: 'user', content: 'hi' }
export const call = (id: string, name: string, args: string): JsonObject => ({ id, type: 'function', function: { name, arguments: args } })
