import { findText, type EventTexts } from '../../stream/event.ts'
import { numberOf, objectOf, objectsOf } from '../read.ts'
import type { JsonObject, TextDelta } from '../types.ts'

/** Text in a chat completion chunk: segments `<choice>:content`, `:reasoning`, `:refusal`, `:tool:<index>`. */
export function findCompletionsTexts(data: JsonObject): EventTexts {
  const deltas: TextDelta[] = []
  const closes: string[] = []
  objectsOf(data['choices']).forEach((choice) => {
    const index = numberOf(choice['index']) ?? 0
    const delta = objectOf(choice['delta'])
    deltas.push(...findText(delta, 'reasoning_content', 'reasoning', `${index}:reasoning`))
    deltas.push(...findText(delta, 'reasoning', 'reasoning', `${index}:reasoning`))
    deltas.push(...findText(delta, 'content', 'text', `${index}:content`))
    for (const part of objectsOf(delta?.['content'])) deltas.push(...findText(part, 'text', 'text', `${index}:content`))
    deltas.push(...findText(delta, 'refusal', 'text', `${index}:refusal`))
    objectsOf(delta?.['tool_calls']).forEach((call, at) => {
      const segment = `${index}:tool:${numberOf(call['index']) ?? at}`
      deltas.push(...findText(objectOf(call['function']), 'arguments', 'toolInput', segment))
      deltas.push(...findText(objectOf(call['custom']), 'input', 'toolInput', segment))
    })
    deltas.push(...findText(objectOf(delta?.['function_call']), 'arguments', 'toolInput', `${index}:function`))
    if (typeof choice['finish_reason'] === 'string') closes.push(`${index}:*`)
  })
  return { deltas, closes }
}
