import { sse } from '../../../harness/llm/behaviour.ts'
import { demand, usageOf, type Api, type Asked } from './api.ts'
import { fragmentsOf, listOf, objectOf, piecesOf, sign, textOf, type Json, type Reply, type Turn, type View } from './script.ts'

/** The Responses API of OpenAI. */

const itemsOf = (input: unknown): readonly Json[] => (typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input))
const partsOf = (content: unknown): readonly Json[] => (typeof content === 'string' ? [{ type: 'input_text', text: content }] : listOf(content))
const isCall = ({ type }: Json): boolean => type === 'function_call' || type === 'custom_tool_call'

export function checkItems({ body }: Asked): void {
  const items = itemsOf(body['input'])
  const ids = new Set(items.filter(isCall).map((item) => item['call_id']))
  const answered = new Set(items.filter(({ type }) => textOf(type).endsWith('_output')).map((item) => item['call_id']))
  for (const id of answered) demand(ids.has(id), `No tool call found for function call output with call_id ${textOf(id)}.`)
  for (const id of ids) demand(answered.has(id), `No tool output found for function call ${textOf(id)}.`)
  for (const [at, item] of items.entries()) {
    if (item['type'] !== 'reasoning') continue
    const next = items[at + 1]
    demand(
      next !== undefined && (isCall(next) || next['role'] === 'assistant' || next['type'] === 'reasoning'),
      `Item '${textOf(item['id'])}' of type 'reasoning' was provided without its required following item.`,
    )
    const { id, encrypted_content: encrypted } = item
    if (encrypted === undefined || encrypted === null)
      demand(body['store'] !== false, `Item with id '${textOf(id)}' not found. Items are not persisted when \`store\` is set to false.`)
    else demand(encrypted === SEAL, `The encrypted content for item ${textOf(id)} could not be verified.`)
  }
}

function readResponses({ body }: Asked): View {
  const turns = itemsOf(body['input']).map((item): Turn => {
    const parts = partsOf(item['content'])
    return {
      role: item['role'] === 'assistant' || isCall(item) ? 'assistant' : 'user',
      text: parts.map((part) => textOf(part['text'])).join('\n'),
      images: parts.flatMap((part) => {
        const [, type = '', data = ''] = /^data:([^;]+);base64,(.*)$/s.exec(textOf(part['image_url'])) ?? []
        return type === '' ? [] : [{ type, data }]
      }),
      calls: isCall(item) ? [textOf(item['call_id'])] : [],
      results: textOf(item['type']).endsWith('_output') ? [{ id: textOf(item['call_id']), text: outputOf(item['output']) }] : [],
    }
  })
  return {
    turns,
    tools: listOf(body['tools'])
      .flatMap((tool) => (tool['type'] === 'namespace' ? listOf(tool['tools']) : [tool]))
      .map(({ name }) => textOf(name)),
    hasSchema: objectOf(objectOf(body['text'])['format'])['type'] === 'json_schema',
    isThinking: (objectOf(body['reasoning'])['effort'] ?? 'none') !== 'none',
    isStreaming: body['stream'] === true,
  }
}

const outputOf = (output: unknown): string =>
  typeof output === 'string'
    ? output
    : listOf(output)
        .map(({ text }) => textOf(text))
        .join('')

let count = 0

/** Encrypted thoughts, which clients receive if they ask for them. */
const SEAL = sign('a thought of OpenAI')
const wantsSeal = ({ body }: Asked): boolean => Array.isArray(body['include']) && body['include'].includes('reasoning.encrypted_content')

function write(reply: Reply, asked: Asked): Json[] {
  const id = ++count
  const seal = wantsSeal(asked) ? { encrypted_content: SEAL } : {}
  return [
    ...(reply.thinking === undefined ? [] : [{ type: 'reasoning', id: `rs_${id}`, summary: [{ type: 'summary_text', text: reply.thinking }], ...seal }]),
    ...(reply.text === ''
      ? []
      : [
          {
            type: 'message',
            id: `msg_${id}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: reply.text, annotations: [], logprobs: [] }],
          },
        ]),
    ...reply.calls.map(({ name, input }) => ({
      type: 'function_call',
      id: `fc_${++count}`,
      status: 'completed',
      call_id: `call_${count}`,
      name,
      arguments: JSON.stringify(input),
    })),
  ]
}

function toResponse(reply: Reply, { body }: Asked, output: readonly Json[], status = 'completed'): Json {
  const { input, output: written } = usageOf(reply)
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_790_000_000,
    status,
    error: null,
    incomplete_details: null,
    instructions: body['instructions'] ?? null,
    model: body['model'],
    output,
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: body['tools'] ?? [],
    top_p: 1,
    metadata: {},
    usage:
      status === 'completed'
        ? {
            input_tokens: input,
            input_tokens_details: { cached_tokens: 0 },
            output_tokens: written,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: input + written,
          }
        : null,
  }
}

function itemEvents(item: Json, output_index: number): [string, Json][] {
  const place = { output_index, item_id: item['id'] }
  const added = (more: Json): [string, Json] => ['response.output_item.added', { output_index, item: { ...item, ...more } }]
  const done: [string, Json] = ['response.output_item.done', { output_index, item }]
  if (item['type'] === 'reasoning') {
    const text = textOf(listOf(item['summary'])[0]?.['text'])
    const part = { ...place, summary_index: 0 }
    return [
      added({ summary: [] }),
      ['response.reasoning_summary_part.added', { ...part, part: { type: 'summary_text', text: '' } }],
      ...piecesOf(text).map((delta): [string, Json] => ['response.reasoning_summary_text.delta', { ...part, delta }]),
      ['response.reasoning_summary_text.done', { ...part, text }],
      ['response.reasoning_summary_part.done', { ...part, part: { type: 'summary_text', text } }],
      done,
    ]
  }
  if (item['type'] === 'function_call')
    return [
      added({ status: 'in_progress', arguments: '' }),
      ...fragmentsOf(JSON.parse(textOf(item['arguments']))).map((delta): [string, Json] => ['response.function_call_arguments.delta', { ...place, delta }]),
      ['response.function_call_arguments.done', { ...place, name: item['name'], arguments: item['arguments'] }],
      done,
    ]
  const [part = {}] = listOf(item['content'])
  const inPart = { ...place, content_index: 0 }
  return [
    added({ status: 'in_progress', content: [] }),
    ['response.content_part.added', { ...inPart, part: { ...part, text: '' } }],
    ...piecesOf(textOf(part['text'])).map((delta): [string, Json] => ['response.output_text.delta', { ...inPart, delta, logprobs: [] }]),
    ['response.output_text.done', { ...inPart, text: part['text'], logprobs: [] }],
    ['response.content_part.done', { ...inPart, part }],
    done,
  ]
}

const number = (events: readonly (readonly [string, Json])[]): Buffer[] =>
  events.map(([type, data], sequence_number) => sse({ type, sequence_number, ...data }, type))

export function responsesApi(rules: Pick<Api, 'schema' | 'check'>): Api {
  return {
    path: /^\/v1\/responses$/,
    ...rules,
    read: readResponses,
    write: (reply, asked) => toResponse(reply, asked, write(reply, asked)),
    events(reply, asked) {
      const items = write(reply, asked)
      return number([
        ['response.created', { response: toResponse(reply, asked, [], 'in_progress') }],
        ['response.in_progress', { response: toResponse(reply, asked, [], 'in_progress') }],
        ...items.flatMap(itemEvents),
        ['response.completed', { response: toResponse(reply, asked, items) }],
      ])
    },
    endless(asked) {
      const none = { thinking: undefined, text: '', calls: [] }
      const item = { type: 'message', id: 'msg_0', role: 'assistant', status: 'in_progress', content: [] }
      const place = { output_index: 0, item_id: 'msg_0', content_index: 0 }
      return {
        first: number([
          ['response.created', { response: toResponse(none, asked, [], 'in_progress') }],
          ['response.output_item.added', { output_index: 0, item }],
          ['response.content_part.added', { ...place, part: { type: 'output_text', text: '', annotations: [], logprobs: [] } }],
        ]),
        next: sse({ type: 'response.output_text.delta', sequence_number: 3, ...place, delta: 'one more ', logprobs: [] }, 'response.output_text.delta'),
      }
    },
    contentType: 'text/event-stream; charset=utf-8',
  }
}
