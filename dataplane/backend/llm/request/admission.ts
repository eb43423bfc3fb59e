import type { RouteType } from '#gen/config/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { pathOf } from '../../../http/message.ts'
import type { LlmTarget } from '../choice/target.ts'
import { isObject } from '../common/json.ts'
import { FormatError, type JsonObject } from '../common/types.ts'
import { comparablePath } from '../settings/routes.ts'
import type { KeyPolicy } from './keys.ts'

/** Types whose content is not checked: prompt guards, hooks of plugins, models of API keys and token limits miss some or all of it. */
const unguardedTypes: ReadonlySet<RouteType> = new Set(['Passthrough', 'Detect', 'Realtime'])

/** Throws a ProxyError for a request that evades checks, where `ai.unguardedRoutes` is Reject (llm.md §3). */
export function checkGuarded({ settings, guards }: LlmTarget, type: RouteType, exchange: Exchange, keys: KeyPolicy, hasHooks: boolean): void {
  if (settings.section.unguardedRoutes !== 'Reject' || !unguardedTypes.has(type)) return
  const evaded = [
    ...(guards === undefined ? [] : ['prompt guards']),
    ...(hasHooks ? ['plugins'] : []),
    ...(keys.hasModels ? ['models of the API key'] : []),
    ...(exchange.tokenBudgets === undefined ? [] : ['token limits']),
  ]
  if (evaded.length === 0) return
  throw new ProxyError('LLM_UNGUARDED', { detail: `${evaded.join(' and ')} do not cover requests of type ${type}, and ai.unguardedRoutes is Reject` })
}

/** Well-known paths of other APIs than chat completions, in comparable form, each with its type. */
const knownPaths = [
  [/\/messages\/count_tokens$/, 'TokenCount'],
  [/\/embeddings$/, 'Embeddings'],
  [/\/responses$/, 'Responses'],
  [/\/messages$/, 'Messages'],
  [/\/realtime$/, 'Realtime'],
  [/\/models$/, 'Models'],
  // The completions of a text; those of a chat have a path of their own.
  [/(?:\/fim|(?<!\/chat))\/completions$/, 'Detect'],
  [/\/images\/(?:generations|edits|variations)$/, 'Detect'],
  [/\/audio\/(?:speech|transcriptions|translations|voices)$/, 'Detect'],
  [/\/rerank$/, 'Rerank'],
  [/\/moderations$/, 'Moderations'],
  [/\/(?:ocr|videos|score|pooling|classify|classifications|tokenize|detokenize)$/, 'Detect'],
  [/\/responses\/(?:compact|input_tokens)$/, 'Detect'],
  [/\/api\/(?:generate|chat|embed)$/, 'Detect'],
  [/:(?:streamgeneratecontent|generatecontent|counttokens|embedcontent|batchembedcontents)$/, 'Gemini'],
  [/:(?:predict|rawpredict|streamrawpredict)$/, 'Detect'],
  [/\/model\/[^/]+\/(?:invoke|invoke-with-response-stream|converse|converse-stream)$/, 'Detect'],
  [/\/(?:files|batches|uploads|assistants|threads|vector_stores|conversations|containers|evals|fine_tuning\/jobs)$/, 'Passthrough'],
] as const satisfies readonly (readonly [RegExp, RouteType])[]
/** Characters of the client's path that an error repeats. */
const MAX_QUOTED_LENGTH = 128

/**
 * Rejects a request that no entry of `ai.routes` matches and that cannot be a chat completion, by its method and path (llm.md §3).
 * Throws a FormatError that names the entry to add.
 */
export function checkCompletionsHead({ request }: Exchange): void {
  const path = comparablePath(pathOf(request.target))
  const { method, body } = request
  const isGet = method === 'GET' || method === 'HEAD'
  const known = knownPathOf(path)
  if (known !== undefined)
    throw notCompletions(`requests for ${known.suffix} are`, path.endsWith(`/v1${known.suffix}`) ? `/v1${known.suffix}` : known.suffix, known.type)
  const list = isGet ? /^.*?(\/v1)?(\/models)\/./.exec(path) : null
  if (list !== null) throw notCompletions('requests for /models are', `${list[1] ?? ''}/models`, 'Models')
  if (isGet) throw notCompletions(`a ${method} request is`, path, 'Passthrough')
  // An empty chat completion is reported as a body that does not parse.
  if ((body === undefined || body.length === 0) && !path.endsWith('/chat/completions')) throw notCompletions('a request without a body is', path, 'Passthrough')
}

/** The API of a path other than chat completions, and the suffix that an entry needs; undefined if the path is of none. */
function knownPathOf(path: string): { readonly suffix: string; readonly type: RouteType } | undefined {
  for (const [pattern, type] of knownPaths) {
    const suffix = pattern.exec(path)?.[0]
    if (suffix !== undefined) return { suffix, type }
  }
  return undefined
}

/**
 * Rejects the body of another API on a route of type Completions: one without `messages` that has a prompt, an input or a query. It must not be sent
 * to a path of chat completions. Throws a FormatError.
 */
export function checkCompletionsBody({ request }: Exchange, body: JsonObject): void {
  if (body['messages'] !== undefined) return
  const field = otherInputs.find((name) => body[name] !== undefined)
  if (field === undefined) return
  const path = comparablePath(pathOf(request.target))
  const type = knownPathOf(path)?.type ?? (field === 'input' ? typeOfInput(body, path) : 'Detect')
  throw notCompletions(`a body with "${field}" and without "messages" is`, path, type)
}

/** What other APIs have in place of `messages`: legacy completions, fill-in-the-middle, images, rerank, audio, OCR, Gemini. */
const otherInputs = ['input', 'prompt', 'query', 'documents', 'suffix', 'contents', 'inputs', 'inputText', 'texts', 'document', 'file']

/** The type of a request with `input`, by its other fields. Clients send a prompt to a path of chats more often than texts to embed. */
function typeOfInput(body: JsonObject, path: string): RouteType {
  const { input } = body
  const model = String(body['model'])
  if (body['voice'] !== undefined || model.includes('moderation')) return 'Detect'
  if (embeddingsFields.some((name) => Object.hasOwn(body, name)) || model.includes('embed')) return 'Embeddings'
  if (responsesFields.some((name) => Object.hasOwn(body, name))) return 'Responses'
  // Items of the Responses API are objects, texts and tokens to embed are not.
  if (Array.isArray(input)) return input.some((item) => isObject(item)) ? 'Responses' : 'Embeddings'
  return path.endsWith('/chat/completions') ? 'Responses' : 'Embeddings'
}

const embeddingsFields = ['dimensions', 'encoding_format', 'input_type']
/** Fields that requests of the Responses API have, and requests for embeddings have not. */
const responsesFields =
  'background,conversation,include,instructions,max_output_tokens,max_tool_calls,parallel_tool_calls,previous_response_id,prompt,reasoning,store,stream,temperature,text,tool_choice,tools,top_p'.split(
    ',',
  )

function notCompletions(subject: string, path: string, type: RouteType): FormatError {
  const suffix = path === '/' || path.length > MAX_QUOTED_LENGTH ? '*' : path
  return new FormatError('unsupported', `${subject} no chat completion: add ${JSON.stringify(suffix)}: ${type} to backend.ai.routes`)
}
