import { runsInBackground } from '../accounting/demand.ts'
import { isObject } from '../common/json.ts'
import { inside } from '../common/read.ts'
import type { ClientFormat, JsonObject } from '../common/types.ts'

/** Formats of clients whose chats are copied. */
export type CopiedFormat = 'completions' | 'messages' | 'responses'

/** The path of each API at the gateway, whatever path the client used: its query may hold credentials. */
export const chatPaths: Readonly<Record<CopiedFormat, string>> = {
  completions: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}

/** Members that name the user or state at the provider, or ask for more than one response. */
const removed: ReadonlySet<string> = new Set([
  'user', 'safety_identifier', 'metadata', 'prompt_cache_key', 'prompt_cache_retention', 'n', 'service_tier', 'store', 'extra_body',
]) // prettier-ignore
/** Members that refer to state of one provider, or let it act. */
const effects: readonly string[] = [
  'previous_response_id', 'conversation', 'prompt', 'container', 'mcp_servers', 'web_search_options', 'audio', 'fallbacks', 'context_management',
] // prettier-ignore
/** Types of tools that the client runs. All others run at the provider. */
const clientTools: ReadonlySet<unknown> = new Set([undefined, null, 'function', 'custom'])
/** Objects and lists of a request that are looked at for files; longer ones are not copied. */
const MAX_VISITED = 20_000

/**
 * The body of a copy: without the names of the user. A text says why the request is not copied: it may change something, or refers to something that
 * only its own provider has (llm.md §15.6).
 */
export function copyBody(body: JsonObject, format: CopiedFormat): JsonObject | string {
  if (runsInBackground(body)) return 'background'
  const effect = effects.find((name) => body[name] !== undefined && body[name] !== null)
  if (effect !== undefined) return effect
  const { tools, modalities } = body
  if (Array.isArray(tools) && tools.some((tool) => !isObject(tool) || !clientTools.has(tool['type']))) return 'tools'
  if (Array.isArray(modalities) && modalities.some((modality) => modality !== 'text')) return 'modalities'
  if (refersToFiles([body['messages'], body['input'], body['system']])) return 'files'
  const copy = Object.fromEntries(Object.entries(body).filter(([name]) => !removed.has(name)))
  // The default of the Responses API is to store.
  return format === 'responses' ? { ...copy, store: false } : copy
}

/** Whether a part names a file or an earlier item by its id, which another account does not have. */
function refersToFiles(waiting: unknown[]): boolean {
  for (let visited = 0; waiting.length > 0; visited++) {
    if (visited > MAX_VISITED) return true
    const value = waiting.pop()
    if (Array.isArray(value)) for (const item of value as unknown[]) waiting.push(item)
    else if (isObject(value)) {
      if (value['file_id'] !== undefined || value['type'] === 'item_reference' || inside(value['source'])['file_id'] !== undefined) return true
      waiting.push(value['content'], value['output'], value['file'], value['image_url'])
    }
  }
  return false
}

/** Whether the response must be JSON. */
export const wantsJson = ({ response_format: completions, text: responses, output_config: messages, output_format: older }: JsonObject): boolean =>
  [completions, inside(responses)['format'], inside(messages)['format'], older].some((format) => String(inside(format)['type']).startsWith('json'))

export const isCopied = (format: ClientFormat | undefined): format is CopiedFormat => format !== undefined && Object.hasOwn(chatPaths, format)

/** The text of the last message of the user. */
export function lastQuestion(messages: readonly { readonly role: string; readonly content: string }[]): string {
  return messages.findLast(({ role }) => role === 'user')?.content ?? messages.at(-1)?.content ?? ''
}
