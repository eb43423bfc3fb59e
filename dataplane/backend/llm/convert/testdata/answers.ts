import { fc } from '#api/property-testing.ts'
import type { JsonObject, UpstreamFormat } from '../../common/types.ts'
import { frame } from './streams.ts'

/** Random responses of models, in the formats of upstreams, buffered and streamed. */

export type AnswerBlock =
  | { readonly type: 'text' | 'refusal'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string }
  | { readonly type: 'redacted'; readonly data: string }
  | { readonly type: 'call'; readonly id: string; readonly name: string; readonly json: string }

const text = fc.oneof(fc.constantFrom('', ' ', '\n', 'é 👋', 'Hello'), fc.string({ maxLength: 12 }))
const id = fc.oneof(
  fc.constantFrom('', 'call_a', 'functions.f:0', 'call_b__thought__si+g/=', 'é', 'x'.repeat(90), 'toolu_01A', 'fc_1'),
  fc.stringMatching(/^[a-zA-Z0-9_.:-]{1,70}$/),
)
/** Names of tools that clients offer. */
export const toolNames = ['get_weather', 'mcp.server/tool', 'x'.repeat(80), '1st', 'with-hyphen', 'é']
const json = fc.constantFrom('{}', '', '{"a":1}', '{"city":"Zürich","list":[1,2]}', '{"nested":{"a":null}}', '[1]', 'not json')
const call = fc.record({ type: fc.constant('call' as const), id, name: fc.constantFrom(...toolNames), json })

/** Blocks in the order in which models send them. */
export const answers: fc.Arbitrary<readonly AnswerBlock[]> = fc
  .tuple(
    fc.array(
      fc.oneof(
        fc.record({ type: fc.constant('thinking' as const), text, signature: fc.constantFrom('', 'EqRk+/8=', ' ') }),
        fc.record({ type: fc.constant('redacted' as const), data: fc.constantFrom('EmwK', 'AAAA') }),
      ),
      { maxLength: 2 },
    ),
    fc.array(fc.record({ type: fc.constantFrom('text' as const, 'text' as const, 'refusal' as const), text }), { maxLength: 2 }),
    fc.array(call, { maxLength: 3 }),
  )
  .map((parts) => parts.flat())

const toJson = (value: string): unknown => {
  try {
    return JSON.parse(value)
  } catch {
    return {}
  }
}

/** The JSON text in pieces. */
const pieces = (value: string): string[] => (value.length > 3 ? [value.slice(0, 3), value.slice(3)] : [value])

/** A buffered response. */
export function bodyOf(blocks: readonly AnswerBlock[], format: UpstreamFormat): JsonObject {
  switch (format) {
    case 'converse':
      return {
        output: { message: { role: 'assistant', content: blocks.map(converseBlock) } },
        stopReason: hasCalls(blocks) ? 'tool_use' : 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      }
    case 'messages':
      return {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: blocks.map(messagesBlock),
        stop_reason: hasCalls(blocks) ? 'tool_use' : 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      }
    case 'responses':
      return { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output: responsesItems(blocks), usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } }
    default:
      return {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: completionsMessage(blocks), finish_reason: hasCalls(blocks) ? 'tool_calls' : 'stop', logprobs: null }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }
  }
}

const hasCalls = (blocks: readonly AnswerBlock[]): boolean => blocks.some(({ type }) => type === 'call')
const textOf = (blocks: readonly AnswerBlock[], kind: AnswerBlock['type']): string =>
  blocks.map((block) => (block.type === kind && 'text' in block ? block.text : '')).join('')

function converseBlock(block: AnswerBlock): JsonObject {
  switch (block.type) {
    case 'thinking':
      return { reasoningContent: { reasoningText: { text: block.text, ...(block.signature !== '' && { signature: block.signature }) } } }
    case 'redacted':
      return { reasoningContent: { redactedContent: block.data } }
    case 'call':
      return { toolUse: { toolUseId: block.id, name: block.name, input: toJson(block.json) } }
    default:
      return { text: block.text }
  }
}

function messagesBlock(block: AnswerBlock): JsonObject {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: block.text, signature: block.signature }
    case 'redacted':
      return { type: 'redacted_thinking', data: block.data }
    case 'call':
      return { type: 'tool_use', id: block.id, name: block.name, input: toJson(block.json) }
    default:
      return { type: 'text', text: block.text, citations: null }
  }
}

function completionsMessage(blocks: readonly AnswerBlock[]): JsonObject {
  const calls = blocks.flatMap((block) => (block.type === 'call' ? [{ id: block.id, type: 'function', function: { name: block.name, arguments: block.json } }] : []))
  const content = textOf(blocks, 'text')
  const refusal = textOf(blocks, 'refusal')
  const reasoning = textOf(blocks, 'thinking')
  return {
    role: 'assistant',
    content: content === '' ? null : content,
    refusal: refusal === '' ? null : refusal,
    annotations: [],
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

function responsesItems(blocks: readonly AnswerBlock[]): JsonObject[] {
  return blocks.flatMap((block, at): JsonObject[] => {
    switch (block.type) {
      case 'thinking':
        return [{ type: 'reasoning', id: `rs_${at}`, summary: [{ type: 'summary_text', text: block.text }], encrypted_content: block.signature }]
      case 'redacted':
        return []
      case 'call':
        return [{ type: 'function_call', id: `fc_${at}`, call_id: block.id, name: block.name, arguments: block.json, status: 'completed' }]
      case 'refusal':
        return [{ type: 'message', id: `msg_${at}`, role: 'assistant', status: 'completed', content: [{ type: 'refusal', refusal: block.text }] }]
      case 'text':
        return [{ type: 'message', id: `msg_${at}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: block.text, annotations: [], logprobs: [] }] }]
    }
  })
}

/** A streamed response; Responses streams are never translated. */
export function streamOf(blocks: readonly AnswerBlock[], format: 'completions' | 'messages' | 'converse'): Buffer {
  switch (format) {
    case 'converse':
      return converseStream(blocks)
    case 'messages':
      return messagesStream(blocks)
    case 'completions':
      return completionsStream(blocks)
  }
}

function converseStream(blocks: readonly AnswerBlock[]): Buffer {
  const frames = blocks.flatMap((block, at) => {
    const delta = (inner: JsonObject): Buffer => frame('contentBlockDelta', { contentBlockIndex: at, delta: inner })
    const stop = frame('contentBlockStop', { contentBlockIndex: at })
    switch (block.type) {
      case 'thinking':
        return [delta({ reasoningContent: { text: block.text } }), ...(block.signature === '' ? [] : [delta({ reasoningContent: { signature: block.signature } })]), stop]
      case 'redacted':
        return [delta({ reasoningContent: { redactedContent: block.data } }), stop]
      case 'call':
        return [
          frame('contentBlockStart', { contentBlockIndex: at, start: { toolUse: { toolUseId: block.id, name: block.name } } }),
          ...pieces(JSON.stringify(toJson(block.json))).map((input) => delta({ toolUse: { input } })),
          stop,
        ]
      default:
        return [delta({ text: block.text }), stop]
    }
  })
  const stopReason = hasCalls(blocks) ? 'tool_use' : 'end_turn'
  return Buffer.concat([frame('messageStart', { role: 'assistant' }), ...frames, frame('messageStop', { stopReason }), frame('metadata', { usage: { inputTokens: 1, outputTokens: 1 } })])
}

function messagesStream(blocks: readonly AnswerBlock[]): Buffer {
  const events = blocks.flatMap((block, index): JsonObject[] => {
    const delta = (inner: JsonObject): JsonObject => ({ type: 'content_block_delta', index, delta: inner })
    const start = (inner: JsonObject): JsonObject => ({ type: 'content_block_start', index, content_block: inner })
    const stop = { type: 'content_block_stop', index }
    switch (block.type) {
      case 'thinking':
        return [
          start({ type: 'thinking', thinking: '', signature: '' }),
          delta({ type: 'thinking_delta', thinking: block.text }),
          delta({ type: 'signature_delta', signature: block.signature }),
          stop,
        ]
      case 'redacted':
        return [start(messagesBlock(block)), stop]
      case 'call':
        return [
          start({ type: 'tool_use', id: block.id, name: block.name, input: {} }),
          ...pieces(JSON.stringify(toJson(block.json))).map((partial) => delta({ type: 'input_json_delta', partial_json: partial })),
          stop,
        ]
      default:
        return [start({ type: 'text', text: '' }), delta({ type: 'text_delta', text: block.text }), stop]
    }
  })
  const all = [
    { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    ...events,
    { type: 'message_delta', delta: { stop_reason: hasCalls(blocks) ? 'tool_use' : 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ]
  return Buffer.from(all.map((event) => `event: ${String((event as JsonObject)['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
}

/** Arguments of parallel calls arrive in turn. */
function completionsStream(blocks: readonly AnswerBlock[]): Buffer {
  const chunk = (delta: JsonObject, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const calls = blocks.filter((block) => block.type === 'call')
  const starts = calls.map(({ id: callId, name }, index) => chunk({ tool_calls: [{ index, id: callId, type: 'function', function: { name, arguments: '' } }] }))
  const parts = calls.map((one) => pieces(one.json))
  const turns = [0, 1].flatMap((turn) => parts.flatMap((part, index) => (part[turn] === undefined ? [] : [chunk({ tool_calls: [{ index, function: { arguments: part[turn] } }] })])))
  const texts = blocks.flatMap((block) => {
    if (block.type === 'thinking') return [chunk({ reasoning_content: block.text })]
    if (block.type === 'text') return [chunk({ content: block.text })]
    return block.type === 'refusal' ? [chunk({ refusal: block.text })] : []
  })
  const end = chunk({}, calls.length > 0 ? 'tool_calls' : 'stop')
  return Buffer.from([chunk({ role: 'assistant', content: '' }), ...texts, ...starts, ...turns, end, 'data: [DONE]\n\n'].join(''))
}
