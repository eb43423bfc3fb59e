import { splitEndpoint } from '#api/backend-hosts.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { openaiFormats } from './openai-api.ts'
import type { Provider, ProviderSettings } from './types.ts'

const suffixes: Readonly<Record<string, string>> = { completions: '/chat/completions', responses: '/responses', embeddings: '/embeddings' }

/** Azure OpenAI. The deployment is the model; with dated API versions it is part of the path. */
export function createAzureOpenai({ endpoint, deploymentName, apiVersion = 'v1' }: ProviderSettings<'providerB'>): Provider {
  const { host, port } = splitEndpoint(endpoint)
  return {
    system: 'azure',
    host,
    ...(port !== undefined && { port }),
    model: deploymentName,
    defaultAuth: { cloudB: {} },
    tokenScope: host.endsWith('.services.ai.azure.com') ? 'https://ai.azure.com/.default' : 'https://cognitiveservices.azure.com/.default',
    realtime: {},
    supports: (from) => (from === 'moderations' ? [] : openaiFormats(from, true)),
    targetOf: (format) => (format === 'responses' ? 'responses' : 'azure'),
    finishHeaders,
    pathFor({ format, model }) {
      // Models of Cohere have their own API below /providers/cohere.
      if (format === 'rerank') return '/providers/cohere/v2/rerank'
      const suffix = suffixes[format] ?? '/chat/completions'
      if (apiVersion === 'v1') return `/openai/v1${suffix}`
      const version = `api-version=${encodeURIComponent(apiVersion)}`
      if (apiVersion === 'preview') return `/openai/v1${suffix}?${version}`
      return format === 'responses' ? `/openai${suffix}?${version}` : `/openai/deployments/${encodeURIComponent(model)}${suffix}?${version}`
    },
  }
}

/** Access tokens of Entra ID are JWTs; API keys are not. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Dated API versions take API keys in `api-key` only. A bearer token replaces that of the client, such as a placeholder of an SDK (llm.md §4.3). */
function finishHeaders(headers: HeaderList): void {
  const token = /^bearer +(.+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  if (token === undefined) return
  if (JWT.test(token)) headers.remove('api-key')
  else headers.set('api-key', token)
}
