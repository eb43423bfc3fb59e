import { openaiFormats } from './openai-api.ts'
import type { Provider, ProviderSettings } from './types.ts'

/** Google Gemini, through its OpenAI-compatible endpoint (llm.md D4). */
export function createGemini({ model }: ProviderSettings<'providerD'>): Provider {
  return {
    system: 'gcp.gemini',
    host: 'generativelanguage.googleapis.com',
    model,
    defaultAuth: undefined,
    supports: (from) => openaiFormats(from, false),
    pathFor: ({ format }) => (format === 'embeddings' ? '/v1beta/openai/embeddings' : '/v1beta/openai/chat/completions'),
  }
}
