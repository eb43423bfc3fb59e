import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { readFailure } from '../common/failures.ts'
import { ObjectProgress } from '../common/object-progress.ts'
import type { ChatFormat, JsonObject, UpstreamFormat } from '../common/types.ts'
import { renderEvents } from '../stream/event.ts'
import { parseFields, SseScanner } from '../stream/sse.ts'
import { frame } from './testdata/streams.ts'
import { pair, responseContext } from './testing.ts'

/** What servers of many vendors send in place of what the API reference shows (llm.md §7.5, §8.3). */

const chats: readonly ChatFormat[] = ['messages', 'responses']
const sse = (...events: readonly unknown[]): Buffer => Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
const chunk = (delta: object, finish: string | null = null): JsonObject => ({ id: 'x', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })
const reply = (message: object, finish = 'stop'): JsonObject => ({ id: 'x', model: 'm', choices: [{ index: 0, message, finish_reason: finish }] })
const call = (index: number, members: object, named = true): JsonObject =>
  chunk({ tool_calls: [{ index, ...(named && { id: `c${index}`, type: 'function' }), function: { ...(named && { name: `f${index}` }), ...members } }] })

function stream(from: ChatFormat, to: UpstreamFormat, bytes: Buffer): { readonly text: string; readonly error: string | undefined } {
  const open = pair(from, to).stream(responseContext())
  const text = renderEvents([...open.push(bytes), ...open.end()]).toString()
  return { text, error: open.facts.error?.message }
}

/** The arguments of the calls in a stream. */
function argumentsOf(from: ChatFormat, text: string): unknown[] {
  if (from === 'messages') return blocksOf(text).map(({ input }) => input)
  const events = new SseScanner().push(Buffer.from(text)).map(({ raw }) => JSON.parse(parseFields(raw).data ?? '{}') as { type: string; arguments: string })
  return events.filter(({ type }) => type === 'response.function_call_arguments.done').map((event) => JSON.parse(event.arguments) as unknown)
}

/** The blocks of a Messages stream. */
function blocksOf(text: string): JsonObject[] {
  const blocks: Record<string, unknown>[] = []
  let json = ''
  for (const { raw } of new SseScanner().push(Buffer.from(text))) {
    const event = JSON.parse(parseFields(raw).data ?? '') as { type: string; index: number; content_block: object; delta: Record<string, string> }
    if (event.type === 'content_block_start') {
      expect(event.index).toBe(blocks.length)
      blocks.push({ ...event.content_block })
      json = ''
    }
    const last = blocks.at(-1)
    if (event.type === 'content_block_delta' && last) {
      json += event.delta['partial_json'] ?? ''
      for (const key of ['text', 'thinking']) if (event.delta[key] !== undefined) last[key] = `${String(last[key])}${event.delta[key]}`
    }
    if (event.type === 'content_block_stop' && last?.['type'] === 'tool_use' && json !== '') last['input'] = JSON.parse(json)
  }
  return blocks
}

describe('parallel tool calls in a stream', () => {
  test('that open with empty arguments and continue in turn are complete', () => {
    const events = [
      call(0, { arguments: '' }),
      call(1, { arguments: '' }),
      call(0, { arguments: '{"a"' }, false),
      call(1, { arguments: '{"b"' }, false),
      call(1, { arguments: ':2}' }, false),
      call(0, { arguments: ':1}' }, false),
      chunk({}, 'tool_calls'),
    ]
    const { text } = stream('messages', 'completions', sse(...events))
    expect(blocksOf(text)).toEqual([
      { type: 'tool_use', id: 'c0', name: 'f0', input: { a: 1 } },
      { type: 'tool_use', id: 'c1', name: 'f1', input: { b: 2 } },
    ])
  })

  test('in any order of fragments, with text between them, lose nothing', () => {
    const input = fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.oneof(fc.string(), fc.integer(), fc.constant({ x: ['"}', '\\'] })), { maxKeys: 3 })
    fc.assert(
      fc.property(
        fc.array(input, { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(fc.nat(7)),
        fc.infiniteStream(fc.integer({ min: 1, max: 6 })),
        (inputs, choices, sizes) => {
          const next = (source: Iterator<number>): number => source.next().value as number
          const rests = inputs.map((value) => JSON.stringify(value))
          const events = inputs.map((_, at) => call(at, { arguments: '' }))
          let said = ''
          while (rests.some((rest) => rest !== '')) {
            const at = next(choices)
            const rest = rests[at]
            if (rest === undefined) {
              events.push(chunk({ content: 'x' }))
              said += 'x'
            } else if (rest !== '') {
              const size = next(sizes)
              events.push(call(at, { arguments: rest.slice(0, size) }, false))
              rests[at] = rest.slice(size)
            }
          }
          const { text, error } = stream('messages', 'completions', sse(...events, chunk({}, 'tool_calls')))
          expect(error).toBeUndefined()
          const blocks = blocksOf(text)
          expect(blocks.flatMap((block) => (block['type'] === 'tool_use' ? [[block['id'], block['input']]] : []))).toEqual(
            inputs.map((value, at) => [`c${at}`, value]),
          )
          expect(blocks.flatMap((block) => (block['type'] === 'text' ? [block['text']] : [])).join('')).toBe(said)
        },
      ),
      { numRuns: 200 },
    )
  })

  test.each<[string, (index: number) => object]>([
    ['as text', (index) => ({ index: String(index) })],
    ['left out of what continues a call', () => ({ index: undefined })],
  ])('with indexes %s are complete', (_, place) => {
    const part = (json: string, index: number): JsonObject => chunk({ tool_calls: [{ ...place(index), function: { arguments: json } }] })
    const events = [
      call(0, { arguments: '' }),
      part('{"a":', 0),
      part('1}', 0),
      call(1, { arguments: '' }),
      part('{"b":', 1),
      part('2}', 1),
      chunk({}, 'tool_calls'),
    ]
    expect(blocksOf(stream('messages', 'completions', sse(...events)).text)).toEqual([
      { type: 'tool_use', id: 'c0', name: 'f0', input: { a: 1 } },
      { type: 'tool_use', id: 'c1', name: 'f1', input: { b: 2 } },
    ])
  })

  test('with arguments for a call that is complete are an error', () => {
    const events = [call(0, { arguments: '{"a":1}' }), call(1, { arguments: '{"b":1}' }), call(0, { arguments: '{"late":1}' }, false), chunk({}, 'tool_calls')]
    expect(stream('messages', 'completions', sse(...events)).text).toContain('event: error')
  })

  test.each(chats)('with an empty object before their arguments are complete: %s', (from) => {
    const events = [
      call(0, { arguments: '{}' }),
      call(1, { arguments: {} }),
      call(0, { arguments: '{"a"' }, false),
      call(1, { arguments: '{"b":2}' }, false),
      call(0, { arguments: ':1}' }, false),
      call(2, { arguments: '{ }' }),
      chunk({}, 'tool_calls'),
    ]
    const { text, error } = stream(from, 'completions', sse(...events))
    expect(error).toBeUndefined()
    expect(argumentsOf(from, text)).toEqual([{ a: 1 }, { b: 2 }, {}])
  })

  test.each(chats)('with one id get one for each: %s', (from) => {
    const same = (index: number): JsonObject =>
      chunk({ tool_calls: [{ index, id: 'call_a', type: 'function', function: { name: `f${index}`, arguments: `{"n":${index}}` } }] })
    const { text } = stream(from, 'completions', sse(same(0), same(1), same(2), chunk({}, 'tool_calls')))
    expect(argumentsOf(from, text)).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }])
    const ids = [...text.matchAll(/"(?:id|call_id)":"(call_a\w*)"/g)].map(([, id]) => id)
    expect([...new Set(ids)]).toEqual(['call_a', 'call_a_2', 'call_a_3'])
    const calls = [0, 1].map((at) => ({ id: 'call_a', type: 'function', function: { name: `f${at}`, arguments: '{}' } }))
    const { body } = pair(from, 'completions').response(reply({ tool_calls: calls }, 'tool_calls'), responseContext())
    expect(JSON.stringify(body)).toContain('"call_a_2"')
  })

  test.each(chats)('without a name for its arguments are an error: %s', (from) => {
    const { text, error } = stream(from, 'completions', sse(call(0, { arguments: '{"a":1}' }, false), chunk({}, 'tool_calls')))
    expect(error).toContain('without its name')
    expect(text).toContain('event: error')
  })

  test('are followed in time that grows with the text only', () => {
    const progress = new ObjectProgress()
    progress.add('{"a":"')
    for (let at = 0; at < 300_000; at++) progress.add('}\\"')
    expect(progress.isComplete).toBe(false)
    progress.add('"}')
    expect(progress.isComplete).toBe(true)
  })
})

describe('arguments of a tool call', () => {
  test.each<[string, object, unknown]>([
    ['as an object', { arguments: { a: [1] } }, { a: [1] }],
    ['as text', { arguments: '{"a":[1]}' }, { a: [1] }],
    ['as null', { arguments: null }, {}],
    ['left out', {}, {}],
  ])('%s are read, streamed or not', (_, members, input) => {
    const message = { content: null, tool_calls: [{ id: 'c0', type: 'function', function: { name: 'f0', ...members } }] }
    const expected = { type: 'tool_use', id: 'c0', name: 'f0', input }
    expect(pair('messages', 'completions').response(reply(message, 'tool_calls'), responseContext()).body['content']).toEqual([expected])
    expect(blocksOf(stream('messages', 'completions', sse(call(0, members), chunk({}, 'tool_calls'))).text)).toEqual([expected])
  })

  test('of a function_call of older servers are read, streamed or not', () => {
    const message = { content: null, function_call: { name: 'f', arguments: '{"a":1}' } }
    const expected = { type: 'tool_use', id: 'tool_call_0', name: 'f', input: { a: 1 } }
    expect(pair('messages', 'completions').response(reply(message, 'function_call'), responseContext()).body['content']).toEqual([expected])
    expect(blocksOf(stream('messages', 'completions', sse(chunk(message), chunk({}, 'function_call'))).text)).toEqual([expected])
  })
})

describe('reasoning', () => {
  test.each<[string, object]>([
    ['as text', { reasoning_content: 'hm', content: 'yes' }],
    ['under another name', { reasoning: 'hm', content: 'yes' }],
    ['as a list', { reasoning_content: [{ type: 'text', text: 'hm' }], content: 'yes' }],
    [
      'as a part of the content',
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
          { type: 'text', text: 'yes' },
        ],
      },
    ],
    ['as details', { reasoning_details: [{ type: 'reasoning.text', text: 'hm' }], content: 'yes' }],
  ])('%s is read, streamed or not', (_, message) => {
    const buffered = pair('messages', 'completions').response(reply(message), responseContext()).body['content'] as JsonObject[]
    for (const blocks of [buffered, blocksOf(stream('messages', 'completions', sse(chunk(message), chunk({}, 'stop'))).text)])
      expect(blocks).toEqual([
        { type: 'thinking', thinking: 'hm', signature: '' },
        { type: 'text', text: 'yes' },
      ])
  })
})

test.each(chats)('a response has no empty text: %s', (from) => {
  const message = { content: '', tool_calls: [{ id: 'c0', type: 'function', function: { name: 'f0', arguments: '{}' } }] }
  expect(JSON.stringify(pair(from, 'completions').response(reply(message, 'tool_calls'), responseContext()).body)).not.toContain('"text":""')
  const converse = {
    output: { message: { content: [{ text: '' }, { toolUse: { toolUseId: 'c0', name: 'f', input: {} } }] } },
    stopReason: 'tool_use',
    usage: {},
  }
  expect(JSON.stringify(pair(from, 'converse').response(converse, responseContext()).body)).not.toContain('"text":""')
})

const failures = [
  'insufficient_system_resource',
  'network_error',
  'error',
  'abort',
  'ERROR',
  'TIMEOUT',
  'OTHER',
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'malformed_model_output',
  'malformed_tool_use',
  'cancelled',
]
describe.each(failures)('the finish reason %s', (reason) => {
  test.each(chats)('is an error of Chat Completions servers: %s', (from) => {
    expect(() => pair(from, 'completions').response(reply({ content: 'a' }, reason), responseContext())).toThrow(reason)
    const { text, error } = stream(from, 'completions', sse(chunk({ content: 'a' }), chunk({}, reason)))
    expect(error).toContain(reason)
    expect(text).not.toMatch(/message_stop|response\.completed/)
  })

  test.each(['completions', ...chats] as const)('is an error of Bedrock: %s', (from) => {
    const body = { output: { message: { content: [{ text: 'a' }] } }, stopReason: reason, usage: {} }
    expect(() => pair(from, 'converse').response(body, responseContext())).toThrow(reason)
    const bytes = Buffer.concat([frame('messageStart', {}), frame('messageStop', { stopReason: reason }), frame('metadata', { usage: {} })])
    expect(stream(from, 'converse', bytes).error).toContain(reason)
  })
})

test.each([
  ['length', 'max_tokens', 'max_output_tokens'],
  ['model_length', 'max_tokens', 'max_output_tokens'],
  ['CONTINUATION', 'max_tokens', 'max_output_tokens'],
  ['content_filter', 'refusal', 'content_filter'],
  ['sensitive', 'refusal', 'content_filter'],
  ['refusal', 'refusal', 'content_filter'],
  ['SAFETY', 'refusal', 'content_filter'],
])('the finish reason %s is %s for Messages clients and incomplete because of %s for Responses clients', (reason, stop, detail) => {
  const bytes = sse(chunk({ content: 'a' }), chunk({}, reason))
  expect(pair('messages', 'completions').response(reply({ content: 'a' }, reason), responseContext()).body['stop_reason']).toBe(stop)
  expect(stream('messages', 'completions', bytes).text).toContain(`"stop_reason":"${stop}"`)
  const incomplete = { status: 'incomplete', error: null, incomplete_details: { reason: detail } }
  expect(pair('responses', 'completions').response(reply({ content: 'a' }, reason), responseContext()).body).toMatchObject(incomplete)
  expect(stream('responses', 'completions', bytes).text).toContain('event: response.incomplete\n')
})

describe('an error inside of a stream', () => {
  test.each<[string, string, string]>([
    ['with a member error', 'data: {"error":{"message":"no","type":"server_error"}}\n\n', 'server_error'],
    ['with a text', 'data: {"error":"no"}\n\n', 'api_error'],
    ['of vLLM', 'data: {"object":"error","message":"no","type":"BadRequestError","code":400}\n\n', 'BadRequestError'],
    ['in a list', 'data: [{"error":{"message":"no","status":"RESOURCE_EXHAUSTED"}}]\n\n', 'rate_limit_error'],
    ['as an event without a member error', 'event: error\ndata: {"message":"no","code":"slow_down"}\n\n', 'slow_down'],
    ['of Anthropic', 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}\n\n', 'overloaded_error'],
    ['as plain text', 'event: error\ndata: no\n\n', 'api_error'],
    ['with a detail', 'event: error\ndata: {"detail":"no"}\n\n', 'api_error'],
  ])('%s is an error for the client', (_, event, type) => {
    for (const from of chats) {
      const open = pair(from, 'completions').stream(responseContext())
      const text = renderEvents([...open.push(sse(chunk({ content: 'a' }))), ...open.push(Buffer.from(event)), ...open.end()]).toString()
      expect(open.facts.error).toMatchObject({ type, message: 'no' })
      expect(text).toContain('event: error')
      expect(text).not.toMatch(/message_stop|response\.completed/)
    }
  })

  test('is none if the member error is empty', () => {
    for (const error of [null, '', false]) expect(readFailure({ error, choices: [] })).toBeUndefined()
  })
})
