import type { RouteType } from '#gen/config/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { pathOf } from '../../../http/message.ts'
import type { LlmTarget } from '../choice/target.ts'
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

/** Well-known paths of other APIs than chat completions, longest first. */
const knownPaths = [
  ['/messages/count_tokens', 'TokenCount'],
  ['/audio/transcriptions', 'Detect'],
  ['/audio/translations', 'Detect'],
  ['/images/generations', 'Detect'],
  ['/images/variations', 'Detect'],
  ['/fim/completions', 'Detect'],
  ['/images/edits', 'Detect'],
  ['/audio/speech', 'Detect'],
  ['/moderations', 'Detect'],
  ['/embeddings', 'Embeddings'],
  ['/responses', 'Responses'],
  ['/messages', 'Messages'],
  ['/realtime', 'Realtime'],
  ['/models', 'Models'],
  ['/rerank', 'Detect'],
  // The completions of a text; those of a chat have a path of their own.
  ['/completions', 'Detect'],
] as const satisfies readonly (readonly [string, RouteType])[]
/** Characters of the client's path that an error repeats. */
const MAX_QUOTED_LENGTH = 128

/**
 * Rejects a request that no entry of `ai.routes` matches and that cannot be a chat completion, by its method and path (llm.md §3).
 * Throws a FormatError that names the entry to add.
 */
export function checkCompletionsHead({ request }: Exchange): void {
  const path = comparablePath(pathOf(request.target))
  const known = path.endsWith('/chat/completions') ? undefined : knownPaths.find(([suffix]) => path.endsWith(suffix))
  if (known !== undefined) throw notCompletions(`requests for ${known[0]} are`, path.endsWith(`/v1${known[0]}`) ? `/v1${known[0]}` : known[0], known[1])
  const { method, body } = request
  if (method === 'GET' || method === 'HEAD') throw notCompletions(`a ${method} request is`, path, 'Passthrough')
  // An empty chat completion is reported as a body that does not parse.
  if ((body === undefined || body.length === 0) && !path.endsWith('/chat/completions')) throw notCompletions('a request without a body is', path, 'Passthrough')
}

/** Rejects a body with `input` or `prompt` and without `messages` at a path that no entry of `ai.routes` matches. Throws a FormatError. */
export function checkCompletionsBody({ request }: Exchange, body: JsonObject): void {
  if (body['messages'] !== undefined) return
  if (typeof body['prompt'] === 'string')
    throw notCompletions('a body with "prompt" and without "messages" is', comparablePath(pathOf(request.target)), 'Detect')
  if (body['input'] === undefined) return
  const isResponses = responsesFields.some((name) => Object.hasOwn(body, name))
  throw notCompletions('a body with "input" and without "messages" is', comparablePath(pathOf(request.target)), isResponses ? 'Responses' : 'Embeddings')
}

/** Fields that requests of the Responses API have, and requests for embeddings have not. */
const responsesFields = ['instructions', 'max_output_tokens', 'previous_response_id', 'reasoning', 'stream', 'text', 'tools']

function notCompletions(subject: string, path: string, type: RouteType): FormatError {
  const suffix = path === '/' || path.length > MAX_QUOTED_LENGTH ? '*' : path
  return new FormatError('unsupported', `${subject} no chat completion: add ${JSON.stringify(suffix)}: ${type} to backend.ai.routes`)
}
