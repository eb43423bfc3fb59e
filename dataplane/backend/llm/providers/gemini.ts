import type { HeaderList } from '../../../http/headers.ts'
import { openaiFormats } from './openai-api.ts'
import type { Provider, ProviderSettings } from './types.ts'

/** Paths of the OpenAI-compatible endpoint. */
const COMPATIBLE = /^\/v1[a-z\d]*\/openai(?:\/|$)/

/** Google Gemini, through its OpenAI-compatible endpoint (llm.md D4); native requests pass on routes that do not interpret bodies. */
export function createGemini({ model }: ProviderSettings<'providerD'>): Provider {
  return {
    system: 'gcp.gemini',
    host: 'generativelanguage.googleapis.com',
    model,
    defaultAuth: undefined,
    supports: (from) => openaiFormats(from, false),
    targetOf: () => 'gemini',
    finishHeaders(headers, from, path) {
      if (from === undefined && !COMPATIBLE.test(path)) moveApiKey(headers)
    },
    pathFor: ({ format }) => (format === 'embeddings' ? '/v1beta/openai/embeddings' : '/v1beta/openai/chat/completions'),
  }
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
