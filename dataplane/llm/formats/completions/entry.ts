import { compact, inside, listOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { readParams } from '../../common/params.ts'
import { findInput, findSegments } from '../../common/segments.ts'
import type { ClientFormatEntry, FlatMessage, JsonObject, SegmentScope, TextSegment } from '../../common/types.ts'

/** The Chat Completions API of OpenAI. */
export const completionsEntry: ClientFormatEntry = {
  format: 'completions',
  title: 'Completions',
  isStreaming: (body) => body['stream'] === true,
  params: readParams,

  enrich(body, { prepend = [], append = [] }) {
    return { ...body, messages: [...prepend.map(toMessage), ...listOf(body['messages']), ...append.map(toMessage)] }
  },

  requestSegments(body) {
    return listOf(body['messages']).flatMap((item, at) => {
      const message = inside(item)
      const role = textOf(message['role']) ?? 'user'
      return [
        ...findSegments(scopeOf(role), role, message['content'], ['messages', at, 'content'], scopeOf(role) === 'systemPrompt' ? '\n' : ' '),
        ...findCalls(message, role, ['messages', at]),
      ]
    })
  },

  responseSegments(body) {
    return listOf(body['choices']).flatMap((item, at) => {
      const message = inside(inside(item)['message'])
      const path = ['choices', at, 'message']
      return [
        ...findSegments('messages', 'assistant', message['content'], [...path, 'content'], ' '),
        ...findSegments('messages', 'assistant', message['refusal'], [...path, 'refusal'], ' '),
        ...findCalls(message, 'assistant', path),
      ]
    })
  },

  flattenRequest: (body) =>
    objectsOf(body['messages']).map((message) => ({ role: textOf(message['role']) ?? 'user', content: joinText(message['content'], ' ') })),
  replaceMessages: (body, messages) => ({ ...body, messages: messages.map(toMessage) }),
  flattenResponse: (body) =>
    objectsOf(body['choices']).map((choice) => {
      const message = inside(choice['message'])
      return { role: textOf(message['role']) ?? 'assistant', content: joinText(message['content'], ' ') }
    }),

  replaceChoices(body, contents) {
    let at = 0
    const choices = listOf(body['choices']).map((item) => {
      const choice = objectOf(item)
      if (choice === undefined) return item
      const content = contents[at++] ?? ''
      const message = inside(choice['message'])
      return joinText(message['content'], ' ') === content ? choice : { ...choice, message: { ...message, content } }
    })
    return { ...body, choices }
  },
}

function toMessage({ role, content }: FlatMessage): JsonObject {
  return compact({ role: role.toLowerCase(), content })
}

function scopeOf(role: string): SegmentScope {
  if (role === 'system' || role === 'developer') return 'systemPrompt'
  return role === 'tool' || role === 'function' ? 'toolOutput' : 'messages'
}

function findCalls(message: JsonObject, role: string, path: readonly (string | number)[]): TextSegment[] {
  const calls = listOf(message['tool_calls']).flatMap((item, at) => {
    const call = inside(item)
    return [
      ...findInput(role, inside(call['function'])['arguments'], [...path, 'tool_calls', at, 'function', 'arguments']),
      ...findInput(role, inside(call['custom'])['input'], [...path, 'tool_calls', at, 'custom', 'input']),
    ]
  })
  return [...calls, ...findInput(role, inside(message['function_call'])['arguments'], [...path, 'function_call', 'arguments'])]
}

/** A string content, or the joined texts of its parts. */
export function joinText(content: unknown, joiner: string): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .flatMap((part) => textOf(part['text']) ?? textOf(part['refusal']) ?? [])
    .join(joiner)
}
