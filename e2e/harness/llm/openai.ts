import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { countWords, list, piecesOf, sse, word, writeEvents, type Behaviour } from './behaviour.ts'

type Json = Readonly<Record<string, unknown>>
const CREATED = 1_760_000_000

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return list(content)
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

/** The tool to call: the first one, unless the conversation already contains its result. */
function toolOf(body: Json, messages: readonly Json[]): string | undefined {
  const last = messages.at(-1)
  if (body['tool_choice'] === 'none' || last?.['role'] === 'tool' || last?.['type'] === 'function_call_output') return undefined
  const tool = list(body['tools'])[0]
  const named = (tool?.['function'] as Json | undefined)?.['name'] ?? tool?.['name']
  return typeof named === 'string' ? named : undefined
}

const ARGUMENTS = { city: 'Paris' }

/** `POST /v1/chat/completions` of the OpenAI API. */
export async function respondCompletions(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const messages = list(body['messages'])
  const prompt = messages.map((message) => textOf(message['content'])).join(' ')
  const tool = toolOf(body, messages)
  const text = behaviour.text ?? (body['response_format'] === undefined ? `echo: ${textOf(messages.at(-1)?.['content'])}` : JSON.stringify(ARGUMENTS))
  const output = countWords(text)
  const input = countWords(prompt)
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output, prompt_tokens_details: { cached_tokens: 0 } }
  const head = { id: 'chatcmpl-mock', created: CREATED, model: word(body['model']), service_tier: 'default', system_fingerprint: 'fp_mock' }
  const call = { id: 'call_mock', type: 'function', function: { name: tool ?? '', arguments: JSON.stringify(ARGUMENTS) } }
  if (body['stream'] !== true) {
    const message =
      tool === undefined ? { role: 'assistant', content: text, refusal: null } : { role: 'assistant', content: null, refusal: null, tool_calls: [call] }
    const choice = { index: 0, message, logprobs: null, finish_reason: tool === undefined ? 'stop' : 'tool_calls' }
    return sendJson(response, { ...head, object: 'chat.completion', choices: [choice], ...(!behaviour.noUsage && { usage }) }, behaviour)
  }
  const chunk = (delta: Json, finish: string | null = null): Buffer =>
    sse({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })
  const deltas =
    tool === undefined
      ? piecesOf(text).map((piece) => chunk({ content: piece }))
      : [
          chunk({ tool_calls: [{ index: 0, id: call.id, type: 'function', function: { name: tool, arguments: '' } }] }),
          ...['{"city"', ':"Paris"}'].map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
        ]
  const isUsageAsked = (body['stream_options'] as Json | undefined)?.['include_usage'] === true && !behaviour.noUsage
  const events = [
    chunk({ role: 'assistant', content: tool === undefined ? '' : null, refusal: null }),
    ...deltas,
    chunk({}, tool === undefined ? 'stop' : 'tool_calls'),
    ...(isUsageAsked ? [sse({ ...head, object: 'chat.completion.chunk', choices: [], usage })] : []),
    sse('[DONE]'),
  ]
  const failure = sse({ error: { message: 'the model failed', type: 'server_error', param: null, code: null } })
  return writeEvents(response, events, failure, behaviour, 'text/event-stream; charset=utf-8')
}

/** `POST /v1/responses`. */
export async function respondResponses(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const items: Json[] = typeof body['input'] === 'string' ? [{ role: 'user', content: body['input'] }] : list(body['input'])
  const prompt = `${word(body['instructions'])} ${items.map((item) => textOf(item['content'])).join(' ')}`
  const tool = toolOf(body, items)
  const format = ((body['text'] as Json | undefined)?.['format'] as Json | undefined)?.['type']
  const text = behaviour.text ?? (format === 'json_schema' ? JSON.stringify(ARGUMENTS) : `echo: ${textOf(items.at(-1)?.['content'])}`)
  const input = countWords(prompt)
  const output = countWords(text)
  const part = { type: 'output_text', text, annotations: [], logprobs: [] }
  const item =
    tool === undefined
      ? { id: 'msg_mock', type: 'message', role: 'assistant', status: 'completed', content: [part] }
      : { id: 'fc_mock', type: 'function_call', status: 'completed', call_id: 'call_mock', name: tool, arguments: JSON.stringify(ARGUMENTS) }
  const completed = {
    id: 'resp_mock',
    object: 'response',
    created_at: CREATED,
    status: 'completed',
    error: null,
    incomplete_details: null,
    instructions: body['instructions'] ?? null,
    model: word(body['model']),
    output: [item],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: body['tools'] ?? [],
    top_p: 1,
    metadata: {},
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + output,
    },
  }
  if (body['stream'] !== true) return sendJson(response, completed, behaviour)
  const open = { ...completed, status: 'in_progress', output: [], usage: null }
  let sequence = 0
  const event = (type: string, data: Json): Buffer => sse({ type, sequence_number: sequence++, ...data }, type)
  const place = { output_index: 0, content_index: 0, item_id: 'msg_mock' }
  const middle =
    tool === undefined
      ? [
          event('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress', content: [] } }),
          event('response.content_part.added', { ...place, part: { ...part, text: '' } }),
          ...piecesOf(text).map((delta) => event('response.output_text.delta', { ...place, delta, logprobs: [] })),
          event('response.output_text.done', { ...place, text, logprobs: [] }),
          event('response.content_part.done', { ...place, part }),
        ]
      : [
          event('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress', arguments: '' } }),
          ...['{"city"', ':"Paris"}'].map((delta) => event('response.function_call_arguments.delta', { output_index: 0, item_id: 'fc_mock', delta })),
          event('response.function_call_arguments.done', { output_index: 0, item_id: 'fc_mock', name: tool, arguments: JSON.stringify(ARGUMENTS) }),
        ]
  const events = [
    event('response.created', { response: open }),
    event('response.in_progress', { response: open }),
    ...middle,
    event('response.output_item.done', { output_index: 0, item }),
    event('response.completed', { response: completed }),
  ]
  const failure = event('error', { code: 'server_error', message: 'the model failed', param: null })
  return writeEvents(response, events, failure, behaviour, 'text/event-stream; charset=utf-8')
}

/** `POST /v1/embeddings`: floats, or base64, which the SDK requests by default. */
export function respondEmbeddings(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const inputs = Array.isArray(body['input']) ? body['input'].map(String) : [word(body['input'])]
  const tokens = inputs.reduce((sum, text) => sum + countWords(text), 0)
  const data = inputs.map((text, index) => {
    const vector = embed(text)
    const embedding = body['encoding_format'] === 'base64' ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector
    return { object: 'embedding', index, embedding }
  })
  return sendJson(response, { object: 'list', data, model: word(body['model']), usage: { prompt_tokens: tokens, total_tokens: tokens } }, behaviour)
}

/** An embedding of three numbers that a 32-bit float represents exactly. */
export function embed(text: string): number[] {
  return [text.length / 128, countWords(text) / 16, 0.5]
}

/** `GET /v1/models`. */
export function respondModels(response: ServerResponse, behaviour: Behaviour): Promise<void> {
  return sendJson(response, { object: 'list', data: [{ id: 'gpt-mock', object: 'model', created: CREATED, owned_by: 'mock' }] }, behaviour)
}

/** Sends JSON, compressed or malformed if the behaviour says so. */
export async function sendJson(response: ServerResponse, value: unknown, behaviour: Partial<Behaviour> = {}, status = 200): Promise<void> {
  const text = behaviour.broken === true ? '{"id":' : JSON.stringify(value)
  const body = behaviour.gzip === true ? gzipSync(text) : Buffer.from(text)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body.length,
    ...(behaviour.gzip === true && { 'content-encoding': 'gzip' }),
  })
  response.end(body)
}
