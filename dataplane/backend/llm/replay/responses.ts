import { inside, listOf, objectOf, objectsOf, textOf } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { UnconvertibleError, type Forms, type StreamEvent } from './form.ts'

class ResponsesCollector {
  #response: JsonObject | undefined

  /** The last event has the whole response. */
  add(data: JsonObject): void {
    if (data['type'] === 'response.completed' || data['type'] === 'response.incomplete') this.#response = objectOf(data['response'])
  }

  body(): JsonObject {
    if (this.#response === undefined) throw new UnconvertibleError('the stream has no complete response')
    return this.#response
  }
}

/** Numbers the events of a response. */
class Expansion {
  #sequence = 0

  event(type: string, members: JsonObject): StreamEvent {
    return { name: type, data: { type, sequence_number: ++this.#sequence, ...members } }
  }

  *item(item: JsonObject, index: number): Iterable<StreamEvent> {
    const place = { item_id: item['id'] ?? '', output_index: index }
    yield this.event('response.output_item.added', { output_index: index, item: beginningOf(item) })
    if (item['type'] === 'function_call') yield* this.#whole('response.function_call_arguments', place, 'arguments', item)
    else if (item['type'] === 'custom_tool_call') yield* this.#whole('response.custom_tool_call_input', place, 'input', item)
    else {
      for (const [at, part] of objectsOf(item['summary']).entries()) yield* this.#summary(part, { ...place, summary_index: at })
      for (const [at, part] of objectsOf(item['content']).entries()) yield* this.#part(part, { ...place, content_index: at })
    }
    yield this.event('response.output_item.done', { output_index: index, item })
  }

  *#whole(type: string, place: JsonObject, key: string, item: JsonObject): Iterable<StreamEvent> {
    const text = textOf(item[key]) ?? ''
    yield this.event(`${type}.delta`, { ...place, delta: text })
    yield this.event(`${type}.done`, { ...place, [key]: text, ...(key === 'arguments' && { name: item['name'] ?? '' }) })
  }

  *#summary(part: JsonObject, place: JsonObject): Iterable<StreamEvent> {
    const text = textOf(part['text']) ?? ''
    yield this.event('response.reasoning_summary_part.added', { ...place, part: { ...part, text: '' } })
    yield this.event('response.reasoning_summary_text.delta', { ...place, delta: text })
    yield this.event('response.reasoning_summary_text.done', { ...place, text })
    yield this.event('response.reasoning_summary_part.done', { ...place, part })
  }

  *#part(part: JsonObject, place: JsonObject): Iterable<StreamEvent> {
    const { type } = part
    const key = type === 'refusal' ? 'refusal' : 'text'
    const text = textOf(part[key]) ?? ''
    const name = type === 'refusal' ? 'response.refusal' : type === 'reasoning_text' ? 'response.reasoning_text' : 'response.output_text'
    const logprobs = type === 'output_text' ? { logprobs: listOf(part['logprobs']) } : {}
    yield this.event('response.content_part.added', { ...place, part: { ...part, [key]: '', ...(type === 'output_text' && { annotations: [] }) } })
    yield this.event(`${name}.delta`, { ...place, delta: text, ...logprobs })
    for (const [at, annotation] of objectsOf(part['annotations']).entries())
      yield this.event('response.output_text.annotation.added', { ...place, annotation_index: at, annotation })
    yield this.event(`${name}.done`, { ...place, [key]: text, ...logprobs })
    yield this.event('response.content_part.done', { ...place, part })
  }
}

/** An item before its content. */
function beginningOf(item: JsonObject): JsonObject {
  switch (item['type']) {
    case 'message':
      return { ...item, content: [], status: 'in_progress' }
    case 'function_call':
      return { ...item, arguments: '', status: 'in_progress' }
    case 'custom_tool_call':
      return { ...item, input: '' }
    case 'reasoning':
      return { ...item, summary: [], ...(item['content'] !== undefined && { content: [] }) }
    default:
      return item
  }
}

function* expand(body: JsonObject): Iterable<StreamEvent> {
  const { status } = body
  // A response in the background goes on.
  if (status !== 'completed' && status !== 'incomplete' && status !== 'failed') throw new UnconvertibleError('the response is not complete')
  const expansion = new Expansion()
  const response = { ...body, status: 'in_progress', output: [], usage: null }
  yield expansion.event('response.created', { response })
  yield expansion.event('response.in_progress', { response })
  for (const [index, item] of objectsOf(body['output']).entries()) yield* expansion.item(item, index)
  yield expansion.event(`response.${status}`, { response: inside(body) })
}

/** The forms of a response of the Responses API. */
export const responsesForms: Forms = { collector: () => new ResponsesCollector(), expand, terminator: '' }
