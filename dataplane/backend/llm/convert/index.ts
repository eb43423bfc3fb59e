import type { ClientFormat, Conversion, UpstreamFormat } from '../common/types.ts'
import { translateChat } from './chat.ts'
import { passCount, translateCount } from './count.ts'
import { passEmbeddings, translateEmbeddings } from './embeddings.ts'
import { passChat } from './native.ts'

/** All conversions, in order of preference (llm.md §5). */
const preferences: readonly Conversion[] = [
  passChat('responses'),
  passChat('completions'),
  passChat('messages'),
  translateChat('completions', 'messages'),
  translateChat('completions', 'converse'),
  translateChat('messages', 'completions'),
  translateChat('messages', 'converse'),
  translateChat('responses', 'completions'),
  translateChat('responses', 'messages'),
  translateChat('responses', 'converse'),
  passEmbeddings(),
  translateEmbeddings('predictEmbeddings'),
  translateEmbeddings('titanEmbeddings'),
  translateEmbeddings('cohereEmbeddings'),
  translateEmbeddings('novaEmbeddings'),
  passCount(),
  translateCount(),
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
