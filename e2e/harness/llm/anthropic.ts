import type { ServerResponse } from 'node:http'
import { countWords, list, piecesOf, sse, word, writeEvents, type Behaviour } from './behaviour.ts'
import { sendJson } from './openai.ts'

type Json = Readonly<Record<string, unknown>>

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return list(content)
    .map((block) => (typeof block['text'] === 'string' ? block['text'] : textOf(block['content'])))
    .join('')
}

function promptOf(body: Json): string {
  return `${textOf(body['system'])} ${list(body['messages'])
    .map((message) => textOf(message['content']))
    .join(' ')}`
}

/** `POST /v1/messages` of the Anthropic API, and of Claude on Vertex AI, where the body has no model. */
export async function respondMessages(body: Json, response: ServerResponse, behaviour: Behaviour, isStreaming = body['stream'] === true): Promise<void> {
  if (typeof body['max_tokens'] !== 'number') return sendAnthropicError(response, 400, 'max_tokens: Field required')
  const messages = list(body['messages'])
  const last = messages.at(-1)
  const hasResult = list(last?.['content']).some((block) => block['type'] === 'tool_result')
  const tool = hasResult || (body['tool_choice'] as Json | undefined)?.['type'] === 'none' ? undefined : list(body['tools'])[0]?.['name']
  const format = ((body['output_config'] as Json | undefined)?.['format'] as Json | undefined)?.['type']
  const text = behaviour.text ?? (format === 'json_schema' ? '{"city":"Paris"}' : `echo: ${textOf(last?.['content'])}`)
  const isThinking = (body['thinking'] as Json | undefined)?.['type'] === 'enabled'
  const usage = {
    input_tokens: countWords(promptOf(body)),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 2,
    output_tokens: countWords(text),
    service_tier: 'standard',
  }
  const blocks: Json[] = [
    ...(isThinking ? [{ type: 'thinking', thinking: 'let me see', signature: 'sig-mock' }] : []),
    tool === undefined ? { type: 'text', text } : { type: 'tool_use', id: 'toolu_mock', name: tool, input: { city: 'Paris' } },
  ]
  const stop = tool === undefined ? 'end_turn' : 'tool_use'
  const head = { id: 'msg_mock', type: 'message', role: 'assistant', model: word(body['model'], 'claude-mock') }
  if (!isStreaming) return sendJson(response, { ...head, content: blocks, stop_reason: stop, stop_sequence: null, usage }, behaviour)
  const event = (data: Json): Buffer => sse(data, word(data['type']))
  const events = [
    event({ type: 'message_start', message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } } }),
    event({ type: 'ping' }),
    ...blocks.flatMap((block, index) => blockEvents(block, index, text).map(event)),
    event({ type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: usage.output_tokens } }),
    event({ type: 'message_stop' }),
  ]
  const failure = event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
  return writeEvents(response, events, failure, behaviour, 'text/event-stream; charset=utf-8')
}

function blockEvents(block: Json, index: number, text: string): Json[] {
  const delta = (change: Json): Json => ({ type: 'content_block_delta', index, delta: change })
  const stop = { type: 'content_block_stop', index }
  switch (block['type']) {
    case 'thinking':
      return [
        { type: 'content_block_start', index, content_block: { type: 'thinking', thinking: '', signature: '' } },
        delta({ type: 'thinking_delta', thinking: block['thinking'] }),
        delta({ type: 'signature_delta', signature: block['signature'] }),
        stop,
      ]
    case 'tool_use':
      return [
        { type: 'content_block_start', index, content_block: { ...block, input: {} } },
        delta({ type: 'input_json_delta', partial_json: '' }),
        ...['{"city"', ':"Paris"}'].map((partial_json) => delta({ type: 'input_json_delta', partial_json })),
        stop,
      ]
    default:
      return [
        { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
        ...piecesOf(text).map((piece) => delta({ type: 'text_delta', text: piece })),
        stop,
      ]
  }
}

/** `POST /v1/messages/count_tokens`. */
export function respondCount(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  return sendJson(response, { input_tokens: countWords(promptOf(body)) }, behaviour)
}

/** Sends an error in the format of the Anthropic API. */
export function sendAnthropicError(response: ServerResponse, status: number, message: string): Promise<void> {
  const type = status === 429 ? 'rate_limit_error' : status === 400 ? 'invalid_request_error' : status === 401 ? 'authentication_error' : 'api_error'
  return sendJson(response, { type: 'error', error: { type, message }, request_id: 'req_mock' }, {}, status)
}
