import { inside, listOf, objectOf, objectsOf } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { UnconvertibleError, type Forms } from './form.ts'

/** Members of a candidate that a later piece replaces. */
type Candidate = Record<string, unknown> & { readonly content: { role: unknown; parts: Record<string, unknown>[] } }

class GeminiCollector {
  #body: JsonObject = {}
  readonly #candidates = new Map<unknown, Candidate>()

  add(data: JsonObject): void {
    const { candidates, ...others } = data
    if (data['error'] !== undefined) throw new UnconvertibleError('the stream has an error')
    this.#body = { ...this.#body, ...others }
    for (const { content, ...rest } of objectsOf(candidates)) {
      const index = rest['index'] ?? 0
      const known = this.#candidates.get(index)
      const candidate: Candidate = known ?? { content: { role: 'model', parts: [] } }
      if (known === undefined) this.#candidates.set(index, candidate)
      Object.assign(candidate, rest)
      for (const part of objectsOf(inside(content)['parts'])) addPart(candidate.content.parts, part)
    }
  }

  body(): JsonObject {
    const candidates = [...this.#candidates.values()]
    if (candidates.length === 0 && objectOf(this.#body['promptFeedback']) === undefined) throw new UnconvertibleError('the stream has no candidate')
    return { candidates: candidates.map(({ content, ...rest }) => ({ content, ...rest })), ...this.#body }
  }
}

/** Pieces of one text are joined; a piece with a signature ends its text. */
function addPart(parts: Record<string, unknown>[], part: JsonObject): void {
  const last = parts.at(-1)
  if (part['text'] === '' && Object.keys(part).length === 1) return
  if (last !== undefined && isPiece(last) && isText(part) && last['thought'] === part['thought']) {
    const { text, ...rest } = part
    Object.assign(last, rest, { text: `${String(last['text'])}${String(text)}` })
  } else parts.push({ ...part })
}

const isText = (part: JsonObject): boolean => typeof part['text'] === 'string'
const isPiece = (part: JsonObject): boolean => isText(part) && part['thoughtSignature'] === undefined

/** The forms of generateContent: a stream may have the whole response in one piece. */
export const geminiForms: Forms = {
  collector: () => new GeminiCollector(),
  *expand(body) {
    if (listOf(body['candidates']).length === 0 && objectOf(body['promptFeedback']) === undefined) throw new UnconvertibleError('the response has no candidate')
    yield { data: body }
  },
  terminator: '',
}
