import { sse } from '../../../harness/llm/behaviour.ts'
import { demand, usageOf, type Api, type Asked } from './api.ts'
import { fragmentsOf, listOf, objectOf, piecesOf, textOf, type Json, type Reply, type Turn, type View } from './script.ts'

/** The Chat Completions API, of OpenAI and of others. */

/** How an API differs from that of OpenAI. */
interface Dialect {
  readonly model: string
  /** The member of a message that has the thoughts of the model, if it shows them. */
  readonly thoughts?: 'reasoning_content'
  /** Gemini: signatures of thoughts at calls. */
  readonly thoughtSignature?: string
  readonly newId: (at: number) => string
}

const partsOf = (content: unknown): readonly Json[] => (typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content))

/** Rules of all servers: a call has a result, a result has a call, and both follow each other. */
export function checkTurns({ body }: Asked): void {
  const messages = listOf(body['messages'])
  let open = new Set<string>()
  for (const [at, message] of messages.entries()) {
    if (message['role'] === 'tool') {
      const id = textOf(message['tool_call_id'])
      demand(open.delete(id), `messages with role 'tool' must be a response to a preceding message with 'tool_calls': ${id}`)
      continue
    }
    demand(open.size === 0, `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${[...open].join()}`)
    open = new Set(listOf(message['tool_calls']).map(({ id }) => textOf(id)))
    const isEmpty = message['content'] === null || message['content'] === undefined
    demand(!isEmpty || message['role'] === 'assistant', `Invalid value for 'content': expected a string, got null: messages[${at}]`)
    for (const call of listOf(message['tool_calls'])) {
      const text = textOf(objectOf(call['function'])['arguments'])
      demand(isJson(text), `messages[${at}].tool_calls: arguments are no JSON: ${text}`)
    }
  }
  demand(open.size === 0, `An assistant message with 'tool_calls' must be followed by tool messages: ${[...open].join()}`)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function readCompletions({ body }: Asked): View {
  const turns = listOf(body['messages']).map((message): Turn => {
    const parts = partsOf(message['content'])
    const text = parts.map((part) => textOf(part['text'])).join('\n')
    return {
      role: message['role'] === 'assistant' ? 'assistant' : 'user',
      text: message['role'] === 'tool' ? '' : text,
      images: parts.flatMap((part) => {
        const [, type = '', data = ''] = /^data:([^;]+);base64,(.*)$/s.exec(textOf(objectOf(part['image_url'])['url'])) ?? []
        return type === '' ? [] : [{ type, data }]
      }),
      calls: listOf(message['tool_calls']).map(({ id }) => textOf(id)),
      results: message['role'] === 'tool' ? [{ id: textOf(message['tool_call_id']), text }] : [],
    }
  })
  const effort = body['reasoning_effort']
  return {
    turns,
    tools: listOf(body['tools']).map((tool) => textOf(objectOf(tool['function'])['name'])),
    hasSchema: objectOf(body['response_format'])['type'] === 'json_schema',
    isThinking: effort !== undefined && effort !== 'none',
    isStreaming: body['stream'] === true,
  }
}

let count = 0

export function completionsApi(path: RegExp, dialect: Dialect, rules: Pick<Api, 'schema' | 'check'>): Api {
  const head = { id: 'chatcmpl-1', created: 1_790_000_000, model: dialect.model }
  const finishOf = ({ calls }: Reply): string => (calls.length > 0 ? 'tool_calls' : 'stop')
  const usage = (reply: Reply): Json => {
    const { input, output } = usageOf(reply)
    return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  }
  const toCall = ({ name, input }: Reply['calls'][number], at: number): Json => ({
    id: dialect.newId(++count),
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
    // Only the first of parallel calls has one.
    ...(at === 0 && dialect.thoughtSignature !== undefined && { extra_content: { google: { thought_signature: dialect.thoughtSignature } } }),
  })
  const chunk = (delta: Json, finish: string | null = null): Buffer =>
    sse({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })
  const thoughtOf = ({ thinking }: Reply): string | undefined => (dialect.thoughts === undefined ? undefined : thinking)
  return {
    path,
    ...rules,
    read: readCompletions,
    write(reply) {
      const thought = thoughtOf(reply)
      const message = {
        role: 'assistant',
        content: reply.text === '' ? null : reply.text,
        ...(dialect.thoughts && thought !== undefined && { [dialect.thoughts]: thought }),
        ...(reply.calls.length > 0 && { tool_calls: reply.calls.map(toCall) }),
      }
      return { ...head, object: 'chat.completion', choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(reply) }], usage: usage(reply) }
    },
    events(reply, { body }) {
      const thought = thoughtOf(reply)
      const calls = reply.calls.map(toCall)
      const opened = calls.map((call, index) => ({ index, ...call, function: { ...objectOf(call['function']), arguments: '' } }))
      const fragments = calls.map((call, index) =>
        fragmentsOf(JSON.parse(textOf(objectOf(call['function'])['arguments']))).map((piece) => ({ index, function: { arguments: piece } })),
      )
      const deltas = opened.flatMap((call, index) => [call, ...(fragments[index] ?? [])])
      return [
        chunk({ role: 'assistant', content: '' }),
        ...(dialect.thoughts && thought !== undefined ? piecesOf(thought).map((piece) => chunk({ [dialect.thoughts ?? '']: piece })) : []),
        ...piecesOf(reply.text).map((content) => chunk({ content })),
        ...deltas.map((call) => chunk({ tool_calls: [call] })),
        chunk({}, finishOf(reply)),
        ...(objectOf(body['stream_options'])['include_usage'] === true
          ? [sse({ ...head, object: 'chat.completion.chunk', choices: [], usage: usage(reply) })]
          : []),
        sse('[DONE]'),
      ]
    },
    endless: () => ({ first: [chunk({ role: 'assistant', content: '' })], next: chunk({ content: 'one more ' }) }),
    contentType: 'text/event-stream',
  }
}
