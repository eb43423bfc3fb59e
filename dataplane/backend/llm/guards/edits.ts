import { isObject } from '../common/json.ts'
import { define, listOf } from '../common/read.ts'
import { parseArguments } from '../common/tools.ts'
import type { JsonObject } from '../common/types.ts'
import type { GuardText } from './texts.ts'

interface Edit {
  readonly inner: Map<string | number, Edit>
  text?: string
  isRemoved?: boolean
}

type Place = GuardText['parts'][number]['place']

/** Changes of texts in a body. */
export class Edits {
  readonly #root: Edit = { inner: new Map() }

  /** Replaces a text. Its last part receives the text, the parts before it are removed. */
  replace({ parts }: GuardText, text: string): void {
    for (const [nth, { place, encode }] of parts.entries()) {
      if (nth === parts.length - 1) this.#reach(place).text = encode === undefined ? text : encode(text)
      // A part is an object with the text in a member, or the text itself.
      else this.#reach(typeof place.key === 'number' ? place : (place.parent ?? place)).isRemoved = true
    }
  }

  #reach({ parent, key }: Place): Edit {
    const keys = [key]
    for (let at = parent; at !== undefined; at = at.parent) keys.push(at.key)
    let edit = this.#root
    for (const next of keys.toReversed()) {
      const inner: Edit = edit.inner.get(next) ?? { inner: new Map() }
      edit.inner.set(next, inner)
      edit = inner
    }
    return edit
  }

  /** Returns a copy of the body with the changes, or the body if there are none. Unchanged values are shared. Copies of changed texts are dropped. */
  apply(body: JsonObject): JsonObject {
    return this.#root.inner.size === 0 ? body : (apply(body, this.#root) as JsonObject)
  }
}

function apply(value: unknown, edit: Edit): unknown {
  if (edit.text !== undefined) return typeof value === 'string' ? edit.text : parseArguments(edit.text)
  if (Array.isArray(value)) {
    return (value as unknown[]).flatMap((item, at) => {
      const inner = edit.inner.get(at)
      return inner === undefined ? [item] : inner.isRemoved === true ? [] : [apply(item, inner)]
    })
  }
  if (!isObject(value)) return value
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    if (repeats(key, edit)) continue
    const inner = edit.inner.get(key)
    define(out, key, inner === undefined ? value[key] : apply(value[key], inner))
  }
  // Annotations refer to offsets of the old text.
  if ((edit.inner.has('text') || edit.inner.has('content')) && listOf(value['annotations']).length > 0) out['annotations'] = []
  // Clients require the members. The signature covers the old text.
  if (edit.inner.has('thinking') && typeof value['signature'] === 'string') out['signature'] = ''
  if (edit.inner.has('reasoning_content') && typeof value['reasoning_signature'] === 'string') out['reasoning_signature'] = ''
  if (edit.inner.has('content') && value['type'] === 'reasoning' && typeof value['encrypted_content'] === 'string') out['encrypted_content'] = null
  if (edit.inner.has('text') && value['thought'] === true) delete out['thoughtSignature']
  if (edit.inner.has('transcript') && typeof value['data'] === 'string') out['data'] = ''
  return out
}

/** Whether a member repeats changed text: token probabilities, and the joined text of a Responses body. */
function repeats(key: string, { inner }: Edit): boolean {
  if (key === 'logprobs') return inner.has('text') || inner.has('message')
  return key === 'output_text' && inner.has('output')
}
