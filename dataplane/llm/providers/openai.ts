import { fitTokenLimit, openaiFormats, type Provider, type ProviderSettings } from './types.ts'

const paths: Readonly<Record<string, string>> = { completions: '/v1/chat/completions', responses: '/v1/responses', embeddings: '/v1/embeddings' }

/** OpenAI. */
export function createProviderA({ model }: ProviderSettings<'providerA'>): Provider {
  return {
    kind: 'providerA',
    system: 'openai',
    host: 'api.openai.com',
    model,
    defaultAuth: undefined,
    realtime: { path: '/v1/realtime' },
    supports: (from) => openaiFormats(from, true),
    finishBody: fitTokenLimit,
    pathFor: ({ format }) => paths[format] ?? '/v1/chat/completions',
  }
}
