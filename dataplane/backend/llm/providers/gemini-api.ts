import { isPlainFormat, type ClientFormat, type UpstreamFormat } from '../common/types.ts'
import { openaiFormats } from './openai-api.ts'

/** The formats of Google's Gemini models: clients of Gemini reach them natively, others through the endpoint that is compatible with OpenAI's API. */
export function geminiFormats(from: ClientFormat): readonly UpstreamFormat[] {
  return from === 'gemini' || from === 'geminiCount' || from === 'geminiEmbeddings' ? [from] : isPlainFormat(from) ? [] : openaiFormats(from, false)
}

/** The method at the end of a native path; undefined for other formats. Streams are always server-sent events. */
export function geminiVerb(format: UpstreamFormat, isStreaming: boolean): string | undefined {
  switch (format) {
    case 'gemini':
      return isStreaming ? ':streamGenerateContent?alt=sse' : ':generateContent'
    case 'geminiCount':
      return ':countTokens'
    case 'geminiEmbeddings':
      return ':batchEmbedContents'
    default:
      return undefined
  }
}
