import { joinText } from '../completions/entry.ts'
import { readParams } from '../../common/params.ts'
import { inside, listOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { findInput, findSegments } from '../../common/segments.ts'
import type { ClientFormatEntry, FlatMessage, JsonObject, TextSegment } from '../../common/types.ts'

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
      messages: [...before.messages, ...listOf(body['messages']), ...after.messages],
    }
  },

  requestSegments(body) {
    return [
      ...findSegments('systemPrompt', 'system', body['system'], ['system'], '\n'),
      ...listOf(body['messages']).flatMap((item, at) => findInMessage(inside(item), ['messages', at])),
    ]
  },

  responseSegments(body) {
    return findInMessage({ role: 'assistant', content: body['content'] }, [])
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
  return objectsOf(content)
    .flatMap((block) => (block['type'] === 'tool_result' ? joinText(block['content'], ' ') : (textOf(block['text']) ?? [])))
    .join(' ')
}

function findInMessage(message: JsonObject, path: readonly (string | number)[]): TextSegment[] {
  const role = textOf(message['role']) ?? 'user'
  const here = [...path, 'content']
  const { content } = message
  const scope = role === 'system' ? 'systemPrompt' : 'messages'
  const tools = listOf(content).flatMap((item, at) => {
    const block = inside(item)
    if (block['type'] === 'tool_result') return findSegments('toolOutput', role, block['content'], [...here, at, 'content'], ' ')
    return block['type'] === 'tool_use' ? findInput(role, block['input'], [...here, at, 'input']) : []
  })
  return [...findSegments(scope, role, content, here, ' '), ...tools]
}
