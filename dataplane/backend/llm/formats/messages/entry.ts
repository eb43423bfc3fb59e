import { appendAtEnds } from '../../common/append.ts'
import { joinText } from '../completions/entry.ts'
import { readParams } from '../../common/params.ts'
import { inside, listOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import type { ClientFormatEntry, FlatMessage, JsonObject } from '../../common/types.ts'

/** The Messages API of Anthropic. */
export const messagesEntry: ClientFormatEntry = {
  format: 'messages',
  title: 'Messages',
  isStreaming: (body) => body['stream'] === true,
  params: readParams,

  enrich(body, { prepend = [], append = [] }) {
    const before = split(prepend)
    const after = split(append)
    const isSystemKept = before.system.length + after.system.length === 0
    return {
      ...body,
      ...(!isSystemKept && { system: [...before.system, ...systemBlocks(body['system']), ...after.system] }),
      messages: [...before.messages, ...appendAtEnds(listOf(body['messages']), after.messages, (message) => inside(message)['role'] === 'assistant')],
    }
  },

  flattenRequest(body) {
    const system = joinText(body['system'], '\n')
    const turns = objectsOf(body['messages']).map((message) => ({ role: textOf(message['role']) ?? 'user', content: flattenContent(message['content']) }))
    return system === '' ? turns : [{ role: 'system', content: system }, ...turns]
  },

  replaceMessages(body, messages) {
    const { system, messages: turns } = split(messages)
    const { system: _replaced, ...rest } = body
    return { ...rest, ...(system.length > 0 && { system }), messages: turns }
  },

  flattenResponse: (body) =>
    objectsOf(body['content']).map((block) => ({ role: 'assistant', content: block['type'] === 'text' ? (textOf(block['text']) ?? '') : '' })),

  replaceChoices(body, contents) {
    let at = 0
    const content = listOf(body['content']).map((item) => {
      const block = objectOf(item)
      if (block === undefined) return item
      const text = contents[at++] ?? ''
      return block['type'] === 'text' && block['text'] !== text ? { ...block, text } : block
    })
    return { ...body, content }
  },
}

function split(messages: readonly FlatMessage[]): { system: JsonObject[]; messages: JsonObject[] } {
  const system: JsonObject[] = []
  const turns: JsonObject[] = []
  for (const { role, content } of messages) {
    const known = role.toLowerCase()
    if (known === 'system' || known === 'developer') system.push({ type: 'text', text: content })
    else turns.push({ role: known, content })
  }
  return { system, messages: turns }
}

function systemBlocks(system: unknown): readonly unknown[] {
  return typeof system === 'string' ? (system === '' ? [] : [{ type: 'text', text: system }]) : listOf(system)
}

/** The text and tool results of one turn. */
function flattenContent(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .flatMap((item) => {
      const block = inside(item)
      return block['type'] === 'tool_result' ? joinText(block['content'], ' ') : (textOf(item) ?? textOf(block['text']) ?? [])
    })
    .join(' ')
}
