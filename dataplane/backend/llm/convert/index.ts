import type { ClientFormat, Conversion, UpstreamFormat } from '../common/types.ts'
import { translateChat } from './chat.ts'
import { passCount, passGeminiCount, translateCount, translateGeminiCount } from './count.ts'
import { passEmbeddings, passGeminiEmbeddings, translateEmbeddings } from './embeddings.ts'
import { passChat } from './native.ts'
import { passPlain } from './plain.ts'

/** All conversions, in order of preference (llm.md §5). */
const preferences: readonly Conversion[] = [
  passChat('responses'),
  passChat('completions'),
  passChat('messages'),
  passChat('gemini'),
  translateChat('completions', 'messages'),
  translateChat('completions', 'converse'),
  translateChat('messages', 'completions'),
  translateChat('messages', 'converse'),
  translateChat('responses', 'completions'),
  translateChat('responses', 'messages'),
  translateChat('responses', 'converse'),
  translateChat('gemini', 'completions'),
  translateChat('gemini', 'messages'),
  translateChat('gemini', 'converse'),
  passEmbeddings(),
  translateEmbeddings('embeddings', 'predictEmbeddings'),
  translateEmbeddings('embeddings', 'titanEmbeddings'),
  translateEmbeddings('embeddings', 'cohereEmbeddings'),
  translateEmbeddings('embeddings', 'novaEmbeddings'),
  passGeminiEmbeddings(),
  translateEmbeddings('geminiEmbeddings', 'embeddings'),
  translateEmbeddings('geminiEmbeddings', 'predictEmbeddings'),
  translateEmbeddings('geminiEmbeddings', 'titanEmbeddings'),
  translateEmbeddings('geminiEmbeddings', 'cohereEmbeddings'),
  translateEmbeddings('geminiEmbeddings', 'novaEmbeddings'),
  passCount(),
  translateCount(),
  passGeminiCount(),
  translateGeminiCount('messagesCount'),
  translateGeminiCount('invokeCount'),
  passPlain('rerank'),
  passPlain('moderations'),
]

/**
 * Returns the first conversion of the preference list for a client format and the formats that the provider supports for the model.
 * undefined if there is none; the client then receives 400 `unsupported conversion: from <title> to provider <provider>`.
 *
 * @example
 * chooseConversion('messages', ['completions', 'responses']) // translates Messages to Chat Completions
 * chooseConversion('responses', ['completions', 'responses']) // native: bodies and streams pass
 */
export function chooseConversion(from: ClientFormat, supported: readonly UpstreamFormat[]): Conversion | undefined {
  return preferences.find((conversion) => conversion.from === from && supported.includes(conversion.to))
}
