import { EventStreamCodec } from '@smithy/eventstream-codec'
import type { JsonObject } from '../../common/types.ts'

/** Streams in the formats of upstreams. */

const sse = (...events: readonly (JsonObject | string)[]): Buffer =>
  Buffer.from(events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join(''))
const named = (...events: readonly JsonObject[]): Buffer => Buffer.from(events.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join(''))

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => new Uint8Array(Buffer.from(text)),
)
/** A frame encoded by the vendor's codec. */
export function frame(type: string, payload: JsonObject, kind: 'event' | 'exception' = 'event'): Buffer {
  const headers = {
    ':message-type': { type: 'string' as const, value: kind },
    [kind === 'event' ? ':event-type' : ':exception-type']: { type: 'string' as const, value: type },
    ':content-type': { type: 'string' as const, value: 'application/json' },
    ':date': { type: 'timestamp' as const, value: new Date(0) },
    ':flag': { type: 'boolean' as const, value: true },
    ':count': { type: 'integer' as const, value: 5 },
  }
  return Buffer.from(codec.encode({ headers, body: new Uint8Array(Buffer.from(JSON.stringify(payload))) }))
}

const chunk = (delta: JsonObject, finish: string | null = null, more: JsonObject = {}): JsonObject => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1700000000,
  model: 'gpt-x',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})

export const streams = {
  completionsText: sse(
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Grüß ' }),
    chunk({ content: 'Gott 👋' }),
    chunk({}, 'stop'),
    { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1700000000, model: 'gpt-x', choices: [], usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14, prompt_tokens_details: { cached_tokens: 3 } } },
    '[DONE]',
  ),
  completionsTools: sse(
    chunk({ role: 'assistant', content: 'Let me see.' }),
    chunk({ tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'f', arguments: '' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
    chunk({ tool_calls: [{ index: 1, type: 'function', function: { name: 'g', arguments: '{}' } }] }),
    chunk({}, 'tool_calls', { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }),
    '[DONE]',
  ),
  /** Two calls with interleaved arguments. */
  completionsInterleaved: sse(
    chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":' } }] }),
    chunk({ tool_calls: [{ index: 1, id: 'b', function: { name: 'g', arguments: '{"y":' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '1}' } }] }),
    chunk({ tool_calls: [{ index: 1, function: { arguments: '2}' } }] }),
    chunk({}, 'tool_calls'),
    '[DONE]',
  ),
  /** An end without terminator, common among compatible servers. */
  completionsNoDone: sse(chunk({ content: 'x' }), chunk({}, 'length')),
  /** Reasoning of compatible servers, then a tool call of Gemini with a thought signature. */
  completionsReasoning: sse(
    chunk({ role: 'assistant', reasoning_content: 'hm, ' }),
    chunk({ reasoning: 'so' }),
    chunk({ content: 'Hello' }),
    chunk({ tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: { google: { thought_signature: 'si+g/=' } } }] }),
    chunk({}, 'tool_calls'),
    '[DONE]',
  ),
  completionsError: sse(chunk({ content: 'x' }), { error: { message: 'overloaded', type: 'server_error' } }),
  messagesText: named(
    { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-x', content: [], usage: { input_tokens: 5, cache_read_input_tokens: 2, output_tokens: 1 } } },
    { type: 'ping' },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'sig' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hellö' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"a":1}' } },
    { type: 'content_block_stop', index: 2 },
    { type: 'content_block_start', index: 3, content_block: { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} } },
    { type: 'content_block_stop', index: 3 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ),
  messagesError: named(
    { type: 'message_start', message: { id: 'msg_1', model: 'claude-x', usage: { input_tokens: 5, output_tokens: 1 } } },
    { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
  ),
  responsesText: named(
    { type: 'response.created', sequence_number: 0, response: { id: 'resp_1', model: 'gpt-x', status: 'in_progress' } },
    { type: 'response.output_item.added', sequence_number: 1, output_index: 0, item: { type: 'message', id: 'm1', content: [] } },
    { type: 'response.output_text.delta', sequence_number: 2, output_index: 0, content_index: 0, item_id: 'm1', delta: 'Hello' },
    { type: 'response.output_text.done', sequence_number: 3, output_index: 0, content_index: 0, item_id: 'm1', text: 'Hello' },
    { type: 'response.output_item.added', sequence_number: 4, output_index: 1, item: { type: 'function_call', id: 'f1', call_id: 'c1', name: 'f', arguments: '' } },
    { type: 'response.function_call_arguments.delta', sequence_number: 5, output_index: 1, item_id: 'f1', delta: '{}' },
    {
      type: 'response.completed',
      sequence_number: 6,
      response: { id: 'resp_1', model: 'gpt-x', status: 'completed', output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hello' }] }], usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7, output_tokens_details: { reasoning_tokens: 1 } } },
    },
  ),
  converseText: Buffer.concat([
    frame('messageStart', { role: 'assistant' }),
    frame('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'hm' } } }),
    frame('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'sig' } } }),
    frame('contentBlockStop', { contentBlockIndex: 0 }),
    frame('contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Hellö' } }),
    frame('contentBlockStop', { contentBlockIndex: 1 }),
    frame('contentBlockStart', { contentBlockIndex: 2, start: { toolUse: { toolUseId: 't1', name: 'a_b' } } }),
    frame('contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{"a":1}' } } }),
    frame('contentBlockStop', { contentBlockIndex: 2 }),
    frame('messageStop', { stopReason: 'tool_use' }),
    frame('metadata', { usage: { inputTokens: 5, outputTokens: 7, totalTokens: 14, cacheReadInputTokens: 2 }, metrics: { latencyMs: 1 } }),
  ]),
  converseError: Buffer.concat([
    frame('messageStart', { role: 'assistant' }),
    frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'x' } }),
    frame('throttlingException', { message: 'slow down' }, 'exception'),
  ]),
} as const
