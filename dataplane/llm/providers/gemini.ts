import { openaiFormats, type Provider, type ProviderSettings } from './types.ts'

/** Google Gemini, by its OpenAI-compatible endpoint (llm.md D:4). */
export function createProviderD({ model }: ProviderSettings<'providerD'>): Provider {
  return {
    kind: 'providerD',
    system: 'gcp.gemini',
    host: 'generativelanguage.googleapis.com',
    model,
    defaultAuth: undefined,
    supports: (from) => openaiFormats(from, false),
    pathFor: ({ format }) => (format === 'embeddings' ? '/v1beta/openai/embeddings' : '/v1beta/openai/chat/completions'),
  }
}
