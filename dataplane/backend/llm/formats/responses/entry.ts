import { appendAtEnds } from '../../common/append.ts'
import { joinText } from '../completions/entry.ts'
import { readParams } from '../../common/params.ts'
import { filledText, inside, listOf, objectOf, objectsOf, textOf, without } from '../../common/read.ts'
import type { ClientFormatEntry, FlatMessage, JsonObject } from '../../common/types.ts'

/** The Responses API of OpenAI. */
export const responsesEntry: ClientFormatEntry = {
  format: 'responses',
  title: 'Responses',
  isStreaming: (body) => body['stream'] === true,
  params: readParams,

  enrich(body, { prepend = [], append = [] }) {
    return { ...body, input: [...prepend.map(toItem), ...appendAtEnds(itemsOf(body['input']), append.map(toItem), isResponse)] }
  },

  flattenRequest(body) {
    const instructions = filledText(body['instructions'])
    const items = itemsOf(body['input']).flatMap((item) => flattenItem(inside(item)))
    return instructions === undefined ? items : [{ role: 'system', content: instructions }, ...items]
  },

  replaceMessages(body, messages) {
    const [first, ...others] = messages
    // flattenRequest returns the instructions as the first message.
    if (filledText(body['instructions']) === undefined || first?.role.toLowerCase() !== 'system')
      return { ...without(body, 'instructions'), input: messages.map(toItem) }
    return { ...body, instructions: first.content, input: others.map(toItem) }
  },

  flattenResponse: (body) => messageItems(body).map((item) => ({ role: textOf(item['role']) ?? 'assistant', content: joinText(item['content'], '\n') })),

  replaceChoices(body, contents) {
    let at = 0
    const output = listOf(body['output']).map((value) => {
      const item = objectOf(value)
      if (item?.['type'] !== 'message') return value
      const text = contents[at++] ?? ''
      return joinText(item['content'], '\n') === text ? item : { ...item, content: [{ type: 'output_text', text, annotations: [] }] }
    })
    return { ...without(body, 'output_text'), output }
  },
}

/** Whether an item is part of a response: a message of the assistant, reasoning, or a call. */
function isResponse(value: unknown): boolean {
  const item = inside(value)
  const type = textOf(item['type']) ?? 'message'
  return type === 'message' ? item['role'] === 'assistant' : type === 'reasoning' || type.endsWith('_call')
}

function toItem({ role, content }: FlatMessage): JsonObject {
  return { type: 'message', role: role.toLowerCase(), content }
}

function itemsOf(input: unknown): readonly unknown[] {
  return typeof input === 'string' ? [toItem({ role: 'user', content: input })] : listOf(input)
}

function messageItems(body: JsonObject): JsonObject[] {
  return objectsOf(body['output']).filter((item) => item['type'] === 'message')
}

function isOutput(item: JsonObject): boolean {
  return item['type'] === 'function_call_output' || item['type'] === 'custom_tool_call_output'
}

function flattenItem(item: JsonObject): FlatMessage[] {
  if (isOutput(item)) return [{ role: 'tool', content: joinText(item['output'], '\n') }]
  if ((item['type'] ?? 'message') !== 'message') return []
  return [{ role: textOf(item['role']) ?? 'user', content: joinText(item['content'], '\n') }]
}
