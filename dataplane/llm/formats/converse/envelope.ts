import { isObject, isRawNumber, parseJson, printJson } from '../../common/json.ts'
import type { Chat, OutputFormat } from '../../common/neutral.ts'
import { compact } from '../../common/read.ts'
import type { JsonObject, RequestContext } from '../../common/types.ts'

/** Betas that Bedrock supports; it rejects requests with others (llm.md §4.3). */
const betas = new Set([
  'computer-use-2025-01-24',
  'token-efficient-tools-2025-02-19',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
  'dev-full-thinking-2025-05-14',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'effort-2025-11-24',
  'tool-search-tool-2025-10-19',
  'tool-examples-2025-10-29',
])

/** Writes `additionalModelRequestFields`: fields of the model that Converse does not define. */
export function envelope(chat: Chat, context: RequestContext, thinking: JsonObject | undefined): JsonObject | undefined {
  const isMessages = chat.origin === 'messages'
  const known = isMessages ? (context.betas ?? []).filter((beta) => betas.has(beta)) : []
  const fields = compact({
    thinking,
    top_k: thinking?.['type'] === 'enabled' ? undefined : chat.topK,
    output_config: isMessages && chat.effort !== undefined ? { effort: chat.effort } : undefined,
    metadata: isMessages ? chat.metadata : undefined,
    anthropic_beta: known.length > 0 ? known : undefined,
  })
  return Object.keys(fields).length > 0 ? fields : undefined
}

/** Writes `outputConfig` for structured output. */
export function writeOutputConfig({ type, schema, name, description }: OutputFormat): JsonObject {
  const shape = type === 'object' ? { type: 'object', additionalProperties: true } : schema
  return { textFormat: { type: 'json_schema', structure: { jsonSchema: compact({ schema: printJson(shape), name, description }) } } }
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
