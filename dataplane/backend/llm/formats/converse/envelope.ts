import { isObject, isRawNumber, parseJson, printJson } from '../../common/json.ts'
import type { Chat, OutputFormat } from '../../common/neutral.ts'
import { compact } from '../../common/read.ts'
import type { JsonObject, RequestContext } from '../../common/types.ts'
import { fitBetas } from '../../rules/transport.ts'
import type { TargetRules } from '../../rules/types.ts'

/** Writes `additionalModelRequestFields`: fields of the model that Converse does not define. */
export function envelope(chat: Chat, context: RequestContext, { betas }: TargetRules): JsonObject | undefined {
  const isMessages = chat.origin === 'messages'
  const known = isMessages ? fitBetas(context.betas ?? [], betas.values, betas.renames) : []
  const fields = compact({
    thinking: chat.thinking,
    top_k: chat.topK,
    output_config: chat.effort !== undefined ? { effort: chat.effort } : undefined,
    metadata: isMessages ? chat.metadata : undefined,
    anthropic_beta: known.length > 0 ? known : undefined,
  })
  return Object.keys(fields).length > 0 ? fields : undefined
}

/** Writes `outputConfig` for structured output. */
export function writeOutputConfig({ schema, name, description }: OutputFormat): JsonObject {
  return { textFormat: { type: 'json_schema', structure: { jsonSchema: compact({ schema: printJson(schema), name, description }) } } }
}

/** Writes `requestMetadata` from the header `x-bedrock-metadata`: the scalars of a JSON object, as strings. Ignores anything else. */
export function writeRequestMetadata(header: string | undefined): JsonObject | undefined {
  if (header === undefined) return undefined
  let parsed: unknown
  try {
    parsed = parseJson(header)
  } catch {
    return undefined
  }
  if (!isObject(parsed)) return undefined
  const entries = Object.entries(parsed).flatMap(([key, value]) => {
    if (typeof value === 'string') return [[key, value]]
    return typeof value === 'number' || typeof value === 'boolean' || isRawNumber(value) ? [[key, printJson(value)]] : []
  })
  return entries.length > 0 ? (Object.fromEntries(entries) as JsonObject) : undefined
}
