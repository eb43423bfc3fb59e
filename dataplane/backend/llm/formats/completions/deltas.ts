import { addText, findText, type EventTexts } from '../../stream/event.ts'
import { isObject } from '../../common/json.ts'
import { inside, numberOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import type { JsonObject, TextDelta } from '../../common/types.ts'

/**
 * Finds the text in a chat completion chunk: segments `<choice>:content`, `:reasoning`, `:refusal`, `:transcript`, `:detail:<index>`,
 * `:tool:<index>`.
 */
export function findCompletionsTexts(data: JsonObject): EventTexts {
  const deltas: TextDelta[] = []
  const closes: string[] = []
  // An event of another shape is searched as a whole.
  const roots: unknown[] = Array.isArray(data['choices']) || data['error'] !== undefined ? [] : [data]
  for (const choice of objectsOf(data['choices'])) {
    const index = numberOf(choice['index']) ?? 0
    const delta = objectOf(choice['delta'])
    if (delta !== undefined) addDelta(delta, index, deltas, choice)
    roots.push(delta, choice['message'])
    if (isObject(choice['logprobs'])) alignLogprobs(choice, deltas)
    if (typeof choice['finish_reason'] === 'string') closes.push(`${index}:*`)
  }
  return { deltas, closes, roots }
}

function addDelta(delta: JsonObject, index: number, deltas: TextDelta[], choice: JsonObject): void {
  const { content, tool_calls: calls, function_call: called, audio, annotations, reasoning_details: details } = delta
  addText(deltas, delta, 'reasoning_content', 'reasoning', `${index}:reasoning`)
  addText(deltas, delta, 'reasoning', 'reasoning', `${index}:reasoning`)
  addText(deltas, delta, 'reasoning_signature', 'copy', `${index}:reasoning`)
  if (typeof content === 'string') addText(deltas, delta, 'content', 'text', `${index}:content`, choice)
  else for (const part of objectsOf(content)) addText(deltas, part, 'text', 'text', `${index}:content`, choice)
  addText(deltas, delta, 'refusal', 'text', `${index}:refusal`, choice)
  if (audio !== undefined) {
    addText(deltas, objectOf(audio), 'transcript', 'text', `${index}:transcript`)
    addText(deltas, objectOf(audio), 'data', 'copy', `${index}:transcript`)
  }
  if (annotations !== undefined)
    for (const citation of objectsOf(annotations)) deltas.push(...findText(objectOf(citation['url_citation']), 'title', 'text', `${index}:title`, true))
  if (details !== undefined)
    objectsOf(details).forEach((detail, at) => {
      const segment = `${index}:detail:${numberOf(detail['index']) ?? at}`
      addText(deltas, detail, 'text', 'reasoning', segment)
      addText(deltas, detail, 'summary', 'reasoning', segment)
    })
  if (calls !== undefined)
    objectsOf(calls).forEach((call, at) => {
      const segment = `${index}:tool:${numberOf(call['index']) ?? at}`
      addText(deltas, objectOf(call['function']), 'arguments', 'toolInput', segment)
      addText(deltas, objectOf(call['custom']), 'input', 'toolInput', segment)
    })
  if (called !== undefined) addText(deltas, objectOf(called), 'arguments', 'toolInput', `${index}:function`)
}

/** Removes token probabilities that are not of the text of their event: they would survive a change of the text. */
function alignLogprobs(choice: JsonObject, deltas: readonly TextDelta[]): void {
  const tokens = [...objectsOf(inside(choice['logprobs'])['content']), ...objectsOf(inside(choice['logprobs'])['refusal'])]
  const texts = deltas.filter(({ segment }) => segment.endsWith(':content') || segment.endsWith(':refusal'))
  if (tokens.map(({ token }) => textOf(token) ?? '').join('') === texts.map(({ text }) => text).join('')) return
  // The event owns its parsed data.
  ;(choice as Record<string, unknown>)['logprobs'] = null
}
