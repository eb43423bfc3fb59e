import { findText, type EventTexts } from '../../stream/event.ts'
import { numberOf, objectOf, objectsOf } from '../../common/read.ts'
import type { JsonObject, TextDelta } from '../../common/types.ts'

/** Finds the text in a piece of a Gemini stream: segments `<candidate>:text`, `:thought`. Calls and results of code are whole in their piece. */
export function findGeminiTexts(data: JsonObject): EventTexts {
  const deltas: TextDelta[] = []
  const closes: string[] = []
  // An event of another shape is searched as a whole.
  const roots: unknown[] = Array.isArray(data['candidates']) || data['usageMetadata'] !== undefined || data['error'] !== undefined ? [] : [data]
  for (const [at, candidate] of objectsOf(data['candidates']).entries()) {
    const index = numberOf(candidate['index']) ?? at
    const content = objectOf(candidate['content'])
    for (const part of objectsOf(content?.['parts'])) {
      const isThought = part['thought'] === true
      deltas.push(...findText(part, 'text', isThought ? 'reasoning' : 'text', `${index}:${isThought ? 'thought' : 'text'}`))
      if (isThought) deltas.push(...findText(part, 'thoughtSignature', 'copy', `${index}:thought`))
    }
    // Sources of the provider's searches have texts of their own.
    roots.push(content, candidate['groundingMetadata'], candidate['citationMetadata'])
    if (typeof candidate['finishReason'] === 'string') closes.push(`${index}:*`)
  }
  return { deltas, closes, roots }
}
