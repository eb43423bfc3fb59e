import type { ContributedField } from '../../../observe/telemetry/access-log/access-log.ts'
import type { RequestParams, Usage } from '../common/types.ts'

/** Fields of the access log and of spans, by parameter of a request and by count of a response. */
const paramFields = {
  temperature: 'gen_ai.request.temperature',
  top_p: 'gen_ai.request.top_p',
  max_tokens: 'gen_ai.request.max_tokens',
  frequency_penalty: 'gen_ai.request.frequency_penalty',
  presence_penalty: 'gen_ai.request.presence_penalty',
  seed: 'gen_ai.request.seed',
  encoding_format: 'gen_ai.request.encoding_formats',
  dimensions: 'gen_ai.embeddings.dimension.count',
} as const satisfies Record<keyof RequestParams, ContributedField>

const usageFields = {
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheCreationInputTokens: 'gen_ai.usage.cache_creation.input_tokens',
  cachedInputTokens: 'gen_ai.usage.cache_read.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning_tokens',
  inputImageTokens: 'gen_ai.usage.input_image_tokens',
  outputImageTokens: 'gen_ai.usage.output_image_tokens',
  inputAudioTokens: 'gen_ai.usage.input_audio_tokens',
  outputAudioTokens: 'gen_ai.usage.output_audio_tokens',
  searches: 'gen_ai.usage.searches',
  images: 'gen_ai.usage.images',
  seconds: 'gen_ai.usage.seconds',
  characters: 'gen_ai.usage.characters',
} as const satisfies Partial<Record<keyof Usage, ContributedField>>

export const paramEntries = Object.entries(paramFields) as [keyof RequestParams, ContributedField][]
export const usageEntries = Object.entries(usageFields) as [keyof Usage, ContributedField][]
