import { bedrockHost, DEFAULT_BEDROCK_REGION } from '#api/backend-hosts.ts'
import { isCountFormat, isEmbeddingsFormat, isPlainFormat, type UpstreamFormat } from '../common/types.ts'
import type { Provider, ProviderCall, ProviderSettings } from './types.ts'

/** Amazon Bedrock: Converse for chats, InvokeModel for embeddings. */
export function createBedrock({ model, region = DEFAULT_BEDROCK_REGION, guardrail }: ProviderSettings<'providerF'>): Provider {
  return {
    system: 'aws.bedrock',
    host: bedrockHost(region),
    model,
    defaultAuth: { cloudA: {} },
    signing: { region, service: 'bedrock' },
    ...(guardrail && { guardrail }),
    realtime: {},
    supports(from, requested) {
      if (isEmbeddingsFormat(from)) return [embeddingsOf(requested.toLowerCase())]
      if (isPlainFormat(from)) return []
      if (isCountFormat(from)) return requested.toLowerCase().includes('anthropic.claude') ? ['invokeCount'] : []
      return ['converse']
    },
    targetOf: () => 'converse',
    pathFor: ({ format, model: requested, isStreaming }) => `/model/${encodeModel(requested)}/${verbOf(format, isStreaming)}`,
    finishHeaders(headers, from) {
      // These are part of the body (llm.md §4.3), or unknown to Bedrock.
      for (const name of ['anthropic-beta', 'anthropic-version', 'x-bedrock-metadata', 'x-api-key']) headers.remove(name)
      if (from === 'responses') for (const name of ['conversation_id', 'session_id']) headers.remove(name)
    },
  }
}

function embeddingsOf(model: string): UpstreamFormat {
  if (model.includes('cohere')) return 'cohereEmbeddings'
  return model.includes('nova') ? 'novaEmbeddings' : 'titanEmbeddings'
}

function verbOf(format: ProviderCall['format'], isStreaming: boolean): string {
  if (format === 'converse') return isStreaming ? 'converse-stream' : 'converse'
  return format === 'invokeCount' ? 'count-tokens' : 'invoke'
}

/** ARNs have slashes. The colon of model versions stays. */
const encodeModel = (model: string): string => encodeURIComponent(model).replaceAll('%3A', ':')
