import { appendAtEnds } from '../../common/append.ts'
import { compact, inside, listOf, objectOf, objectsOf, textOf, without } from '../../common/read.ts'
import { readParams } from '../../common/params.ts'
import type { ClientFormatEntry, FlatMessage, JsonObject } from '../../common/types.ts'

/** The Chat Completions API of OpenAI. */
export const completionsEntry: ClientFormatEntry = {
  format: 'completions',
  title: 'Completions',
  isStreaming: (body) => body['stream'] === true,
  params: readParams,

  enrich(body, { prepend = [], append = [] }) {
    return { ...body, messages: [...prepend.map(toMessage), ...appendAtEnds(listOf(body['messages']), append.map(toMessage), isAssistant)] }
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
      return joinText(message['content'], ' ') === content
        ? choice
        : { ...without(choice, 'logprobs'), message: { ...without(message, 'annotations'), content } }
    })
    return { ...body, choices }
  },
}

const isAssistant = (message: unknown): boolean => inside(message)['role'] === 'assistant'

function toMessage({ role, content }: FlatMessage): JsonObject {
  return compact({ role: role.toLowerCase(), content })
}

/** A string content, or the joined texts of its parts. Some servers accept strings as parts. */
export function joinText(content: unknown, joiner: string): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .flatMap((part) => textOf(part) ?? textOf(inside(part)['text']) ?? textOf(inside(part)['refusal']) ?? [])
    .join(joiner)
}
