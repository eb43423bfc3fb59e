import { describe, expect, test } from '@jest/globals'
import { renderEvents } from '../stream/event.ts'
import { parseFields, SseScanner } from '../stream/sse.ts'
import type { ClientEvent, ClientFormat, ResponseStream, StreamOptions, UpstreamFormat } from '../common/types.ts'
import { frame, streams } from './testdata/streams.ts'
import { pair, responseContext } from './testing.ts'

function open(from: ClientFormat, to: UpstreamFormat, options: StreamOptions = { collects: true }): ResponseStream {
  return pair(from, to).stream(responseContext({ toolNames: new Map([['a_b', 'a.b']]) }, { 'x-amzn-requestid': 'req-1' }), options)
}

function run(stream: ResponseStream, ...chunks: readonly Buffer[]): string {
  const events: ClientEvent[] = chunks.flatMap((chunk) => [...stream.push(chunk)])
  return renderEvents([...events, ...stream.end()]).toString()
}

/** Summarizes events as `name: short form`, for readable comparisons. */
function outline(text: string): string[] {
  return new SseScanner().push(Buffer.from(text)).map(({ raw }) => {
    const { name, data = '' } = parseFields(raw)
    if (data === '[DONE]') return data
    const json = JSON.parse(data) as Record<string, unknown>
    if (name !== undefined) expect(json['type']).toBe(name)
    return JSON.stringify(name === undefined ? shortChunk(json) : json)
  })
}

function shortChunk({ choices, usage, error }: Record<string, unknown>): unknown {
  const [choice] = (choices ?? []) as { delta: unknown; finish_reason: unknown }[]
  return {
    ...(choice && { delta: choice.delta }),
    ...(typeof choice?.finish_reason === 'string' && { finish: choice.finish_reason }),
    ...(usage !== undefined && { usage }),
    ...(error !== undefined && { error }),
  }
}

const tool = (index: number, members: object): object => ({ tool_calls: [{ index, ...members }] })
const line = (value: unknown): string => JSON.stringify(value)

describe('streams', () => {
  test('Messages -> Chat Completions: role on the first delta, finish and usage in one chunk, [DONE]', () => {
    const stream = open('completions', 'messages')
    expect(outline(run(stream, streams.messagesText))).toEqual([
      line({ delta: { role: 'assistant', reasoning_content: 'hm' } }),
      line({ delta: { reasoning_signature: 'sig' } }),
      line({ delta: { content: 'Hellö' } }),
      line({ delta: tool(0, { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '' } }) }),
      line({ delta: tool(0, { function: { arguments: '{"a":1}' } }) }),
      line({ delta: tool(1, { id: 'toolu_2', type: 'function', function: { name: 'g', arguments: '' } }) }),
      line({ delta: tool(1, { function: { arguments: '{}' } }) }),
      line({
        delta: {},
        finish: 'tool_calls',
        usage: { prompt_tokens: 7, completion_tokens: 9, total_tokens: 16, cache_read_input_tokens: 2, prompt_tokens_details: { cached_tokens: 2 } },
      }),
      '[DONE]',
    ])
    expect(stream.facts).toMatchObject({
      usage: { inputTokens: 7, outputTokens: 9, totalTokens: 16, providerInputTokens: 5, cachedInputTokens: 2 },
      responseModel: 'claude-x',
      completion: ['Hellö'],
      toolCalls: [
        { id: 'toolu_1', name: 'f', arguments: '{"a":1}' },
        { id: 'toolu_2', name: 'g', arguments: '' },
      ],
      isComplete: true,
      error: undefined,
    })
  })

  test('Chat Completions -> Messages: start, delta and stop in order, usage at the end', () => {
    const stream = open('messages', 'completions')
    expect(outline(run(stream, streams.completionsText))).toEqual([
      line({
        type: 'message_start',
        message: {
          id: 'chatcmpl-1',
          type: 'message',
          role: 'assistant',
          model: 'gpt-x',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 0, output_tokens: 0 },
        },
      }),
      line({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      line({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüß ' } }),
      line({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Gott 👋' } }),
      line({ type: 'content_block_stop', index: 0 }),
      line({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { input_tokens: 7, output_tokens: 4, cache_read_input_tokens: 3 },
      }),
      line({ type: 'message_stop' }),
    ])
    expect(stream.facts.usage).toMatchObject({ inputTokens: 10, outputTokens: 4, cachedInputTokens: 3 })
  })

  test.each(['completions', 'messages', 'responses'] as const)(
    'Chat Completions -> %s: the model is that of the first chunk with an id or a choice',
    (from) => {
      const choice = { index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }
      const stream = open(from, 'completions')
      const chunks = [
        { id: '', object: '', created: 0, model: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
        { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o-2024-11-20', service_tier: 'default', choices: [choice] },
      ]
      const text = run(stream, Buffer.from(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('') + 'data: [DONE]\n\n'))
      expect(stream.facts).toMatchObject({ responseModel: 'gpt-4o-2024-11-20', serviceTier: 'default', completion: ['Hi'] })
      expect(text).toContain('"model":"gpt-4o-2024-11-20"')
    },
  )

  test('Chat Completions -> Messages: one block per tool call, also for interleaved calls', () => {
    const shape = (text: string): string[] =>
      outline(text).map((event) => {
        const {
          type,
          index,
          content_block: block,
          delta,
        } = JSON.parse(event) as {
          type: string
          index?: number
          content_block?: { type: string; id?: string }
          delta?: { partial_json?: string; stop_reason?: string }
        }
        return [type.replace('content_block_', ''), index, block?.type, block?.id, delta?.partial_json, delta?.stop_reason]
          .filter((word) => word !== undefined)
          .join(' ')
      })
    expect(shape(run(open('messages', 'completions'), streams.completionsTools))).toEqual([
      'message_start',
      'start 0 text',
      'delta 0',
      'stop 0',
      'start 1 tool_use call_a',
      'delta 1 {"a"',
      'delta 1 :1}',
      'stop 1',
      'start 2 tool_use tool_call_1',
      'delta 2 {}',
      'stop 2',
      'message_delta tool_use',
      'message_stop',
    ])
    expect(shape(run(open('messages', 'completions'), streams.completionsInterleaved))).toEqual([
      'message_start',
      'start 0 tool_use a',
      'delta 0 {"x":',
      'delta 0 1}',
      'stop 0',
      'start 1 tool_use b',
      'delta 1 {"y":',
      'delta 1 2}',
      'stop 1',
      'message_delta tool_use',
      'message_stop',
    ])
  })

  test('Converse -> Chat Completions: separate chunks for role, finish reason and usage', () => {
    const text = run(open('completions', 'converse'), streams.converseText)
    expect(outline(text)).toEqual([
      line({ delta: { role: 'assistant', content: '' } }),
      line({ delta: { reasoning_content: 'hm' } }),
      line({ delta: { reasoning_signature: 'sig' } }),
      line({ delta: { content: 'Hellö' } }),
      line({ delta: tool(0, { id: 't1', type: 'function', function: { name: 'a.b', arguments: '' } }) }),
      line({ delta: tool(0, { function: { arguments: '{"a":1}' } }) }),
      line({ delta: {}, finish: 'tool_calls' }),
      line({ usage: { prompt_tokens: 7, completion_tokens: 7, total_tokens: 14, cache_read_input_tokens: 2, prompt_tokens_details: { cached_tokens: 2 } } }),
      '[DONE]',
    ])
    expect(text).toContain('"id":"req-1"')
  })

  test('Converse -> Messages: blocks, the restored tool name, usage at the end', () => {
    const events = outline(run(open('messages', 'converse'), streams.converseText)).map((event) => JSON.parse(event) as Record<string, unknown>)
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(events[8]).toEqual({ type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 't1', name: 'a.b', input: {} } })
    expect(events.at(-2)).toEqual({
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 2 },
    })
  })

  test.each([
    ['converse', streams.converseText, ['reasoning', 'message', 'function_call'], 'Hellö'],
    ['completions', streams.completionsReasoning, ['reasoning', 'message', 'function_call'], 'Hello'],
    ['completions', streams.completionsTools, ['message', 'function_call', 'function_call'], 'Let me see.'],
  ] as const)('%s -> Responses: events are numbered from 1, and the last one repeats the whole response', (to, bytes, items, outputText) => {
    const events = outline(run(open('responses', to), bytes)).map((event) => JSON.parse(event) as Record<string, unknown>)
    expect(events.map((event) => event['sequence_number'])).toEqual(events.map((_, at) => at + 1))
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining([
        'response.created',
        'response.output_item.added',
        'response.content_part.added',
        'response.output_text.delta',
        'response.output_text.done',
        'response.content_part.done',
        'response.function_call_arguments.done',
        'response.output_item.done',
      ]),
    )
    const last = events.at(-1) as {
      type: string
      response: { status: string; output: { type: string; content?: { text: string }[] }[]; usage: { input_tokens: number } }
    }
    expect(last).toMatchObject({ type: 'response.completed', response: { status: 'completed' } })
    expect(last.response.output.map(({ type }) => type)).toEqual(items)
    expect(
      last.response.output
        .find(({ type }) => type === 'message')
        ?.content?.map(({ text }) => text)
        .join(''),
    ).toBe(outputText)
    if (bytes !== streams.completionsReasoning) expect(last.response.usage.input_tokens).toBeGreaterThan(0)
  })

  test('Chat Completions -> Messages: reasoning becomes a thinking block, and the thought signature part of the tool call id', () => {
    const text = run(open('messages', 'completions'), streams.completionsReasoning)
    expect(text).toContain('"content_block":{"type":"thinking","thinking":"","signature":""}')
    expect(text).toContain('"delta":{"type":"thinking_delta","thinking":"hm, "}')
    expect(text).toContain('"delta":{"type":"thinking_delta","thinking":"so"}')
    expect(text).toContain('"id":"call_a__thought__si+g/="')
  })

  test('Chat Completions -> Responses: reasoning becomes an item of its own', () => {
    const events = outline(run(open('responses', 'completions'), streams.completionsReasoning)).map((event) => JSON.parse(event) as Record<string, unknown>)
    // An item with null is not sent back by the AI SDK.
    const item = { type: 'reasoning', id: 'rs_0000000000000002', encrypted_content: 'signature:' }
    const place = { item_id: item.id, output_index: 0, summary_index: 0 }
    const reasoning = events.slice(2, 9)
    for (const event of reasoning) delete event['sequence_number']
    expect(reasoning).toEqual([
      { type: 'response.output_item.added', output_index: 0, item: { ...item, summary: [], status: 'in_progress' } },
      { type: 'response.reasoning_summary_part.added', ...place, part: { type: 'summary_text', text: '' } },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: 'hm, ' },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: 'so' },
      { type: 'response.reasoning_summary_text.done', ...place, text: 'hm, so' },
      { type: 'response.reasoning_summary_part.done', ...place, part: { type: 'summary_text', text: 'hm, so' } },
      { type: 'response.output_item.done', output_index: 0, item: { ...item, summary: [{ type: 'summary_text', text: 'hm, so' }], status: 'completed' } },
    ])
    expect(JSON.stringify(events)).toContain('"call_id":"call_a__thought__si+g/="')
  })

  test.each(['completionsText', 'messagesText', 'responsesText'] as const)('native %s passes byte for byte, and its facts are read', (name) => {
    const format = name.replace('Text', '') as 'completions' | 'messages' | 'responses'
    for (const collects of [true, false]) {
      const stream = open(format, format, { collects })
      expect(run(stream, streams[name])).toBe(streams[name].toString())
      expect(stream.facts.usage.outputTokens).toBeGreaterThan(1)
      expect(stream.facts).toMatchObject({ isComplete: true, hasContent: true, error: undefined })
      expect(stream.facts.completion.length).toBe(collects ? 1 : 0)
    }
  })

  test('unknown events, comments and unreadable events pass natively, and are dropped with guards', () => {
    const unusual = Buffer.from(': ping\n\ndata: not json\n\ndata: {"future":1}\n\n')
    expect(run(open('completions', 'completions'), unusual, streams.completionsText)).toBe(unusual.toString() + streams.completionsText.toString())
    expect(run(open('completions', 'completions', { isGuarded: true }), unusual, streams.completionsText)).toBe(
      `data: {"future":1}\n\n${streams.completionsText.toString()}`,
    )
  })
})

const pairs = [
  ['completions', 'completions', 'completions'],
  ['messages', 'messages', 'messages'],
  ['responses', 'responses', 'responses'],
  ['completions', 'messages', 'messages'],
  ['messages', 'completions', 'completions'],
  ['responses', 'completions', 'completions'],
  ['completions', 'converse', 'converse'],
  ['messages', 'converse', 'converse'],
  ['responses', 'converse', 'converse'],
] as const

describe.each(pairs)('a client of %s over an upstream of %s', (from, to, source) => {
  const corpora = Object.entries(streams).filter(([name]) => name.startsWith(source))

  test.each(corpora)('receives the same events if the stream %s is split at every byte', (_name, bytes) => {
    for (const isGuarded of from === to ? [true, false] : [false]) {
      const expected = run(open(from, to, { collects: true, isGuarded }), bytes)
      const wholeFacts = open(from, to)
      run(wholeFacts, bytes)
      const facts = JSON.stringify(wholeFacts.facts)
      const different: number[] = []
      for (let at = 1; at < bytes.length; at++) {
        const stream = open(from, to, { collects: true, isGuarded })
        if (run(stream, bytes.subarray(0, at), bytes.subarray(at)) !== expected || JSON.stringify(stream.facts) !== facts) different.push(at)
      }
      expect(different).toEqual([])
      const single = open(from, to, { collects: true, isGuarded })
      expect(run(single, ...Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toBe(expected)
    }
  })

  test('receives an error and no terminator if the stream is truncated', () => {
    const [, bytes] = corpora[0] ?? ['', Buffer.alloc(0)]
    const cut = bytes.subarray(0, bytes.length >> 1)
    const stream = open(from, to)
    const text = run(stream, cut)
    expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/)
    expect(stream.facts).toMatchObject({ isComplete: false, error: { type: 'upstream_error' } })
    expect(stream.isOver).toBe(true)
    const last = outline(text).at(-1) ?? ''
    expect(JSON.parse(last)).toMatchObject(
      from === 'responses' ? { type: 'error', code: 'upstream_error' } : { error: { type: from === 'messages' ? 'api_error' : 'upstream_error' } },
    )
    expect(stream.push(bytes)).toEqual([])
  })

  test('receives one error event in its format from fail()', () => {
    const stream = open(from, to)
    expect(renderEvents(stream.fail('stopped by a guard', 'content_filter')).toString()).toContain('stopped by a guard')
    expect([...stream.fail('again'), ...stream.end(), ...stream.push(Buffer.from('data: {}\n\n'))]).toEqual([])
  })
})

describe('errors in streams', () => {
  test.each([
    ['completions', 'messages', streams.messagesError, 'data: {"error":{"message":"Overloaded","type":"overloaded_error"'],
    ['messages', 'completions', streams.completionsError, 'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"overloaded"}}'],
    ['messages', 'converse', streams.converseError, 'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"slow down"}}'],
    ['responses', 'completions', streams.completionsError, 'event: error\ndata: {"type":"error"'],
    ['completions', 'converse', streams.converseError, 'data: {"error":{"message":"slow down"'],
  ] as const)('of an upstream are translated for a client of %s over %s', (from, to, bytes, expected) => {
    const stream = open(from, to)
    const text = run(stream, bytes)
    expect(text).toContain(expected)
    expect(text).not.toContain('[DONE]')
    expect(stream.facts.error).toBeDefined()
  })

  test('an error before any content is reported in the facts, for failover', () => {
    const stream = open('messages', 'messages')
    run(stream, streams.messagesError)
    expect(stream.facts).toMatchObject({ hasContent: false, error: { type: 'overloaded_error' } })
  })

  test('a frame with a wrong checksum ends the stream after the frames before it', () => {
    const bad = frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'two' } })
    bad[bad.length - 1] = (bad.at(-1) ?? 0) ^ 1
    const text = run(open('completions', 'converse'), Buffer.concat([frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'one' } }), bad]))
    expect(text).toContain('one')
    expect(text).not.toContain('two')
    expect(text).toContain('wrong checksum')
  })

  test('a finish reason without terminator completes the stream', () => {
    expect(run(open('messages', 'completions'), streams.completionsNoDone)).toContain('"stop_reason":"max_tokens"')
    const native = open('completions', 'completions')
    expect(run(native, streams.completionsNoDone)).toBe(streams.completionsNoDone.toString())
    expect(native.facts.isComplete).toBe(true)
  })

  test('the collected text of an endless response is limited', () => {
    const stream = open('completions', 'completions')
    const bytes = Buffer.from(`data: {"choices":[{"delta":{"content":"${'x'.repeat(500_000)}"}}]}\n\n`)
    for (let i = 0; i < 10; i++) stream.push(bytes)
    expect(stream.facts.completion[0]?.length).toBe(2_000_000)
    expect(stream.facts.deltas).toBe(10)
  })

  test.each(['completions', 'messages'] as const)('%s over Messages: a stop reason without message_stop completes the stream', (from) => {
    const bytes = streams.messagesText.subarray(0, streams.messagesText.indexOf('event: message_stop'))
    const stream = open(from, 'messages')
    const text = run(stream, bytes)
    expect(text).not.toMatch(/upstream_error|api_error/)
    if (from === 'completions') expect(text).toContain('[DONE]')
    else expect(text).toBe(bytes.toString())
    expect(stream.facts.isComplete).toBe(true)
  })

  test('a stream with bare CR line ends is translated and passes natively', () => {
    const bytes = Buffer.from(streams.messagesText.toString().replaceAll('\n', '\r'))
    expect(run(open('completions', 'messages'), bytes)).toBe(run(open('completions', 'messages'), streams.messagesText))
    expect(run(open('messages', 'messages'), bytes)).toBe(bytes.toString())
  })

  test.each(['completions', 'messages', 'responses'] as const)('thinking tokens that only the total includes are output tokens for %s', (from) => {
    const stream = open(from, 'completions')
    const usage = { prompt_tokens: 7, completion_tokens: 0, total_tokens: 67 }
    const text = run(
      stream,
      Buffer.from(`data: ${JSON.stringify({ choices: [{ delta: { content: 'x' }, finish_reason: 'stop' }], usage })}\n\ndata: [DONE]\n\n`),
    )
    expect(stream.facts.usage).toMatchObject({ inputTokens: 7, outputTokens: 60, totalTokens: 67 })
    expect(text).toContain(from === 'completions' ? '"completion_tokens":60,"total_tokens":67' : '"output_tokens":60')
  })

  test('content as a list of parts is text, for clients and for guards', () => {
    const bytes = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"one"},{"type":"text","text":" two"}]}}]}\n\n')
    expect(run(open('messages', 'completions'), bytes)).toContain('"text":"one two"')
    const [event] = open('completions', 'completions', { isGuarded: true }).push(bytes)
    expect(event?.deltas.map(({ segment, text }) => `${segment} ${text}`)).toEqual(['0:content one', '0:content  two'])
  })

  test('an event that is too large ends the stream', () => {
    for (const to of ['completions', 'messages', 'converse'] as const) {
      const stream = open('completions', to, { maxEventBytes: 100 })
      const text = run(stream, Buffer.from(`data: {"x":"${'y'.repeat(200)}`))
      expect(text).toContain('error')
      expect(stream.facts.error).toBeDefined()
    }
  })
})
