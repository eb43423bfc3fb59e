import { vertexHost } from '#api/backend-hosts.ts'
import { isCountFormat, isEmbeddingsFormat, isPlainFormat, type JsonObject } from '../common/types.ts'
import { isObject } from '../common/json.ts'
import { geminiFormats, geminiVerb } from './gemini-api.ts'
import type { Provider, ProviderCall, ProviderSettings } from './types.ts'

/** Models with the API of Gemini. */
const GEMINI = /^gemini[-@]/
const ANTHROPIC_VERSION = 'vertex-2023-10-16'

/** Google Vertex AI: Claude models in the Messages format, all others through the OpenAI-compatible endpoint. */
export function createVertexAi({ model, projectId, region }: ProviderSettings<'providerE'>): Provider {
  const base = `/v1/projects/${encodeURIComponent(projectId)}/locations/${encodeURIComponent(region)}`
  return {
    system: 'gcp.vertex_ai',
    host: vertexHost(region),
    model,
    defaultAuth: { cloudC: {} },
    supports(from, requested) {
      if (isEmbeddingsFormat(from)) return ['predictEmbeddings']
      if (isPlainFormat(from)) return []
      if (claudeOf(requested) !== undefined) return isCountFormat(from) ? ['messagesCount'] : ['messages']
      return GEMINI.test(googleOf(requested)) ? geminiFormats(from) : ['completions']
    },
    targetOf: (format) => (format === 'messages' || format === 'messagesCount' ? 'vertexClaude' : 'vertex'),
    pathFor({ format, model: requested, isStreaming }) {
      if (format === 'messages') {
        const verb = isStreaming ? 'streamRawPredict' : 'rawPredict'
        return `${base}/publishers/anthropic/models/${segment(claudeOf(requested) ?? requested)}:${verb}`
      }
      if (format === 'messagesCount') return `${base}/publishers/anthropic/models/count-tokens:rawPredict`
      const verb = geminiVerb(format, isStreaming)
      if (verb !== undefined) return `${base}/publishers/google/models/${segment(googleOf(requested))}${verb}`
      if (format === 'predictEmbeddings') return `${base}/publishers/google/models/${segment(googleOf(requested))}:predict`
      return `${base}/endpoints/openapi/chat/completions`
    },
    finishBody,
    finishHeaders(headers, from) {
      // The key of a client of Anthropic.
      if (from === 'messages' || from === 'tokenCount') headers.remove('x-api-key')
      // That of a client of Google, beside the credential of the gateway.
      if (headers.has('authorization')) headers.remove('x-goog-api-key')
    },
  }
}

const segment = (model: string): string => encodeURIComponent(model).replaceAll('%40', '@')

/** The name of a Claude model on Vertex AI; undefined for other models (llm.md §4.2). */
function claudeOf(model: string): string | undefined {
  const marker = 'publishers/anthropic/models/'
  const at = model.indexOf(marker)
  const name = at !== -1 ? model.slice(at + marker.length) : model.startsWith('anthropic/') ? model.slice('anthropic/'.length) : model
  if (at === -1 && name === model && !model.startsWith('claude-')) return undefined
  return name.replace(/-(\d{8})$/, '@$1')
}

const googleOf = (model: string): string => model.replace(/^(?:.*publishers\/google\/models\/|models\/|google\/)/, '')

/** For Claude models, the model moves to the path and the API version to the body (llm.md §4.3). */
function finishBody(body: JsonObject, { format, model }: ProviderCall): JsonObject {
  if (format !== 'messages' && format !== 'messagesCount') return body
  const { model: _, output_format: __, service_tier: ___, ...rest } = body
  const kept = withoutCacheScope(rest) as JsonObject
  return { ...kept, anthropic_version: ANTHROPIC_VERSION, ...(format === 'messagesCount' && { model: claudeOf(model) ?? model }) }
}

/** Returns a copy without `cache_control.scope`, which Vertex AI rejects; the same object if there is none. */
function withoutCacheScope(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(withoutCacheScope)
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (!isObject(value)) return value
  let copy: Record<string, unknown> | undefined
  for (const [key, member] of Object.entries(value)) {
    let next = withoutCacheScope(member)
    if (key === 'cache_control' && isObject(next) && 'scope' in next) {
      const { scope: _, ...rest } = next
      next = rest
    }
    if (next !== member) (copy ??= { ...value })[key] = next
  }
  return copy ?? value
}
