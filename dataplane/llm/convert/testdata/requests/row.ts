import type { ClientFormat, JsonObject, RequestContext, UpstreamFormat } from '../../../common/types.ts'

interface RequestRow {
  readonly from: ClientFormat
  readonly to: UpstreamFormat
  readonly body: JsonObject
  readonly context?: Partial<RequestContext>
  /** The whole converted body. */
  readonly is?: JsonObject
  /** Members of it; undefined: must be absent. */
  readonly has?: JsonObject
  /** The error's text has this. */
  readonly refuses?: string
}

/** Rows, keyed by a sentence. */
export type RequestRows = Readonly<Record<string, RequestRow>>

export const hi = { role: 'user', content: 'hi' }
export const call = (id: string, name: string, args: string): JsonObject => ({ id, type: 'function', function: { name, arguments: args } })
