import { addText, type EventTexts } from '../../stream/event.ts'
import { numberOf, objectOf, objectsOf } from '../../common/read.ts'
import type { JsonObject, TextDelta } from '../../common/types.ts'

/** Finds the text in a chat completion chunk: segments `<choice>:content`, `:reasoning`, `:refusal`, `:tool:<index>`. */
export function findCompletionsTexts(data: JsonObject): EventTexts {
  const deltas: TextDelta[] = []
  const closes: string[] = []
  for (const choice of objectsOf(data['choices'])) {
    const index = numberOf(choice['index']) ?? 0
    const delta = objectOf(choice['delta'])
    if (delta !== undefined) addDelta(delta, index, deltas)
    if (typeof choice['finish_reason'] === 'string') closes.push(`${index}:*`)
  }
  return { deltas, closes }
}

function addDelta(delta: JsonObject, index: number, deltas: TextDelta[]): void {
  const { content, tool_calls: calls, function_call: called } = delta
  addText(deltas, delta, 'reasoning_content', 'reasoning', `${index}:reasoning`)
  addText(deltas, delta, 'reasoning', 'reasoning', `${index}:reasoning`)
  if (typeof content === 'string') addText(deltas, delta, 'content', 'text', `${index}:content`)
  else for (const part of objectsOf(content)) addText(deltas, part, 'text', 'text', `${index}:content`)
  addText(deltas, delta, 'refusal', 'text', `${index}:refusal`)
  if (calls !== undefined)
    objectsOf(calls).forEach((call, at) => {
      const segment = `${index}:tool:${numberOf(call['index']) ?? at}`
      addText(deltas, objectOf(call['function']), 'arguments', 'toolInput', segment)
      addText(deltas, objectOf(call['custom']), 'input', 'toolInput', segment)
    })
  if (called !== undefined) addText(deltas, objectOf(called), 'arguments', 'toolInput', `${index}:function`)
}
