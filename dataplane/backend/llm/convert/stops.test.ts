import { describe, expect, test } from '@jest/globals'
import { completionsStops, messagesStops } from '../common/stops.ts'
import type { ChatFormat, JsonObject, Stop } from '../common/types.ts'
import { renderEvents } from '../stream/event.ts'
import { frame } from './testdata/streams.ts'
import { pair, responseContext } from './testing.ts'

/** Every finish reason of every provider, for every client, buffered and streamed (llm.md §7.3, §7.5, §7.9 to §7.11). */

const reasons: Readonly<Record<'completions' | 'messages' | 'converse', Readonly<Record<string, Stop | 'failure'>>>> = {
  completions: {
    stop: 'end',
    length: 'maxTokens',
    model_length: 'maxTokens',
    content_filter: 'filtered',
    sensitive: 'filtered',
    refusal: 'filtered',
    guardrail_intervened: 'filtered',
    tool_calls: 'toolUse',
    function_call: 'toolUse',
    STOP: 'end',
    MAX_TOKENS: 'maxTokens',
    CONTINUATION: 'maxTokens',
    SAFETY: 'filtered',
    RECITATION: 'filtered',
    LANGUAGE: 'filtered',
    BLOCKLIST: 'filtered',
    PROHIBITED_CONTENT: 'filtered',
    SPII: 'filtered',
    IMAGE_SAFETY: 'filtered',
    'content_filter: RECITATION': 'filtered',
    a_reason_of_tomorrow: 'end',
    insufficient_system_resource: 'failure',
    network_error: 'failure',
    error: 'failure',
    abort: 'failure',
    MALFORMED_FUNCTION_CALL: 'failure',
    UNEXPECTED_TOOL_CALL: 'failure',
    TOO_MANY_TOOL_CALLS: 'failure',
    OTHER: 'failure',
    TIMEOUT: 'failure',
  },
  messages: {
    end_turn: 'end',
    stop_sequence: 'stopSequence',
    pause_turn: 'pause',
    max_tokens: 'maxTokens',
    model_context_window_exceeded: 'contextWindow',
    tool_use: 'toolUse',
    refusal: 'filtered',
  },
  converse: {
    end_turn: 'end',
    stop_sequence: 'stopSequence',
    max_tokens: 'maxTokens',
    model_context_window_exceeded: 'contextWindow',
    tool_use: 'toolUse',
    content_filtered: 'filtered',
    guardrail_intervened: 'filtered',
    malformed_model_output: 'failure',
    malformed_tool_use: 'failure',
  },
}

const bodies: Readonly<Record<string, (reason: string) => JsonObject>> = {
  completions: (reason) => ({ id: 'x', model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: reason }] }),
  messages: (reason) => ({ id: 'x', model: 'm', content: [{ type: 'text', text: 'a' }], stop_reason: reason, usage: {} }),
  converse: (reason) => ({ output: { message: { role: 'assistant', content: [{ text: 'a' }] } }, stopReason: reason, usage: {} }),
}
const sse = (...events: readonly JsonObject[]): Buffer => Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
const streams: Readonly<Record<string, (reason: string) => Buffer>> = {
  completions: (reason) =>
    sse({ id: 'x', model: 'm', choices: [{ index: 0, delta: { content: 'a' } }] }, { id: 'x', choices: [{ index: 0, delta: {}, finish_reason: reason }] }),
  messages: (reason) =>
    sse(
      { type: 'message_start', message: { id: 'x', model: 'm', usage: {} } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: reason }, usage: {} },
      { type: 'message_stop' },
    ),
  converse: (reason) =>
    Buffer.concat([
      frame('messageStart', { role: 'assistant' }),
      frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'a' } }),
      frame('contentBlockStop', { contentBlockIndex: 0 }),
      frame('messageStop', { stopReason: reason }),
      frame('metadata', { usage: {} }),
    ]),
}

/** What the client reads in place of a neutral reason. */
function shown(client: ChatFormat, stop: Stop): string {
  if (client === 'completions') return `"finish_reason":"${completionsStops[stop]}"`
  if (client === 'messages') return `"stop_reason":"${messagesStops[stop]}"`
  if (stop === 'filtered') return '"status":"incomplete","error":null,"incomplete_details":{"reason":"content_filter"}'
  if (stop === 'maxTokens' || stop === 'contextWindow') return '"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"}'
  return '"status":"completed","error":null,"incomplete_details":null'
}

const pairs: readonly (readonly [ChatFormat, keyof typeof reasons])[] = [
  ['messages', 'completions'],
  ['responses', 'completions'],
  ['completions', 'messages'],
  ['completions', 'converse'],
  ['messages', 'converse'],
  ['responses', 'converse'],
]

describe.each(pairs)('for clients of %s and providers of %s', (client, upstream) => {
  const conversion = pair(client, upstream)
  test.each(Object.entries(reasons[upstream]))('the reason %s is %s, buffered and streamed', (reason, stop) => {
    const buffered = (): JsonObject => conversion.response(bodies[upstream]?.(reason), responseContext()).body
    const open = conversion.stream(responseContext())
    const streamed = renderEvents([...open.push(streams[upstream]?.(reason) ?? Buffer.alloc(0)), ...open.end()]).toString()
    if (stop === 'failure') {
      expect(buffered).toThrow(reason)
      expect(open.facts.error?.message).toContain(reason)
      expect(streamed).toMatch(/"(?:type":"error|error":\{)/)
      return
    }
    expect(JSON.stringify(buffered())).toContain(shown(client, stop))
    expect(streamed).toContain(shown(client, stop))
    if (client === 'responses')
      expect(streamed).toContain(`event: response.${stop === 'maxTokens' || stop === 'contextWindow' || stop === 'filtered' ? 'incomplete' : 'completed'}\n`)
  })
})

test.each(pairs)('an empty text or thought is no block for clients of %s and providers of %s', (client, upstream) => {
  const empty: Readonly<Record<string, JsonObject>> = {
    completions: { choices: [{ message: { content: '', reasoning_content: '' }, finish_reason: 'stop' }] },
    messages: {
      content: [
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'text', text: '' },
      ],
      stop_reason: 'end_turn',
    },
    converse: { output: { message: { content: [{ reasoningContent: { reasoningText: { text: '' } } }, { text: '' }] } }, stopReason: 'end_turn' },
  }
  const { body } = pair(client, upstream).response(empty[upstream], responseContext())
  if (client === 'completions') expect(body).toMatchObject({ choices: [{ message: { content: null } }] })
  else expect(body[client === 'messages' ? 'content' : 'output']).toEqual([])
})
