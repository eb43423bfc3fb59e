import type { HeaderList } from '../../../http/headers.ts'
import { isGeminiFormat } from '../common/types.ts'
import { geminiFormats, geminiVerb } from './gemini-api.ts'
import type { Provider, ProviderSettings } from './types.ts'

/** Paths of the OpenAI-compatible endpoint. */
const COMPATIBLE = /^\/v1[a-z\d]*\/openai(?:\/|$)/

/** Google Gemini: natively for clients of Gemini, through its OpenAI-compatible endpoint for others (llm.md D4). */
export function createGemini({ model }: ProviderSettings<'providerD'>): Provider {
  return {
    system: 'gcp.gemini',
    host: 'generativelanguage.googleapis.com',
    model,
    defaultAuth: undefined,
    supports: geminiFormats,
    targetOf: () => 'gemini',
    finishHeaders(headers, from, path) {
      if ((from === undefined || isGeminiFormat(from)) && !COMPATIBLE.test(path)) moveApiKey(headers)
    },
    pathFor({ format, model: requested, isStreaming }) {
      const verb = geminiVerb(format, isStreaming)
      if (verb === undefined) return format === 'embeddings' ? '/v1beta/openai/embeddings' : '/v1beta/openai/chat/completions'
      return `/v1beta/${resourceOf(requested)}${verb}`
    },
  }
}

/** The model in a path. */
function resourceOf(model: string): string {
  const [, kind = 'models', name = model] = /^(tunedModels|models)\/(.*)$/.exec(model) ?? []
  return `${kind}/${encodeURIComponent(name)}`
}

/** The native API takes bearer tokens of OAuth only, and API keys in a header of their own, in place of that of the client (llm.md §4.3). */
function moveApiKey(headers: HeaderList): void {
  const token = /^bearer +(.+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  if (token === undefined) return
  headers.remove('x-goog-api-key')
  if (!token.startsWith('AIza')) return
  headers.set('x-goog-api-key', token)
  headers.remove('authorization')
}
