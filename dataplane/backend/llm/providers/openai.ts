import { isChatFormat } from '../common/types.ts'
import { isOpenaiModel } from '../rules/families.ts'
import { openaiFormats } from './openai-api.ts'
import type { Provider, ProviderSettings } from './types.ts'

const paths: Readonly<Record<string, string>> = {
  completions: '/v1/chat/completions',
  responses: '/v1/responses',
  embeddings: '/v1/embeddings',
  moderations: '/v1/moderations',
}

/** OpenAI, and servers that implement its API (`host` in the config). */
export function createOpenai({ model, formats }: ProviderSettings<'providerA'>): Provider {
  return {
    system: 'openai',
    host: 'api.openai.com',
    model,
    defaultAuth: undefined,
    realtime: { path: '/v1/realtime' },
    supports(from) {
      const all = openaiFormats(from, true)
      return formats === undefined || !isChatFormat(from) ? all : all.filter((format) => formats.some((name) => name.toLowerCase() === format))
    },
    targetOf: (format, requested) => (format === 'responses' ? 'responses' : isOpenaiModel(requested) ? 'openai' : 'compatible'),
    // Servers have rankings at /rerank, /v1/rerank and /v2/rerank.
    pathFor: ({ format }) => (format === 'rerank' ? undefined : (paths[format] ?? '/v1/chat/completions')),
  }
}
