import { describe, expect, test } from '@jest/globals'
import { renderEvents } from '../stream/event.ts'
import { parseFields, SseScanner } from '../stream/sse.ts'
import type { ChatFormat, ResponseStream } from '../common/types.ts'
import { pair, responseContext } from './testing.ts'

/** Responses as the OpenAI-compatible endpoint of Gemini sends them (llm.md §8.3). */

const usage = (output: number): object => ({ prompt_tokens: 5, completion_tokens: output, total_tokens: 5 + output })
const chunk = (delta: object, finish: string | null, output: number): object => ({
  id: 'x',
  model: 'gemini',
  choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason: finish }],
  usage: usage(output),
})
const call = (name: string, json: string, more: object = {}): object => ({ tool_calls: [{ type: 'function', function: { name, arguments: json }, ...more }] })
const sse = (...events: readonly unknown[]): Buffer => Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
const done = Buffer.from('data: [DONE]\n\n')

const open = (from: ChatFormat): ResponseStream => pair(from, 'completions').stream(responseContext(), { collects: true })
const run = (stream: ResponseStream, ...chunks: readonly Buffer[]): string =>
  renderEvents([...chunks.flatMap((bytes) => [...stream.push(bytes)]), ...stream.end()]).toString()

/** The tool calls of a stream of Messages events, as `id name input`, and its stop reason. */
function callsOf(text: string): string[] {
  const calls: string[] = []
  for (const { raw } of new SseScanner().push(Buffer.from(text))) {
    const event = JSON.parse(parseFields(raw).data ?? '') as {
      content_block?: { id: string; name: string }
      delta?: { partial_json?: string; stop_reason?: string }
      usage?: { output_tokens: number }
    }
    const { content_block: block, delta } = event
    if (block) calls.push(`${block.id} ${block.name} `)
    if (delta?.partial_json !== undefined) calls[calls.length - 1] += delta.partial_json
    if (delta?.stop_reason !== undefined) calls.push(`${delta.stop_reason} ${event.usage?.output_tokens}`)
  }
  return calls
}

test('calls without id in a response of Gemini have ids for clients, so that results can name them', () => {
  const message = { role: 'assistant', ...call('f', '{"a":1}', { id: '' }) }
  const body = { id: 'x', model: 'gemini', choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage: usage(1) }
  expect(pair('messages', 'completions').response(body, responseContext()).body).toMatchObject({
    content: [{ type: 'tool_use', id: 'tool_call_0', name: 'f' }],
  })
  expect(pair('responses', 'completions').response(body, responseContext()).body).toMatchObject({ output: [{ type: 'function_call', call_id: 'tool_call_0' }] })
})

test.each([
  ['SAFETY', 'refusal', 'incomplete'],
  ['content_filter: RECITATION', 'refusal', 'incomplete'],
  ['IMAGE_PROHIBITED_CONTENT', 'refusal', 'incomplete'],
  ['MAX_TOKENS', 'max_tokens', 'incomplete'],
  ['STOP', 'end_turn', 'completed'],
])('the finish reason %s of Gemini is %s for Messages clients and %s for Responses clients', (reason, stop, status) => {
  const body = { id: 'x', model: 'gemini', choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: reason }], usage: usage(1) }
  const chunks = sse(chunk({ content: 'a' }, null, 1), chunk({}, reason, 1))
  expect(pair('messages', 'completions').response(body, responseContext()).body).toMatchObject({ stop_reason: stop })
  expect(run(open('messages'), chunks, done)).toContain(`"stop_reason":"${stop}"`)
  expect(pair('responses', 'completions').response(body, responseContext()).body).toMatchObject({ status })
  expect(run(open('responses'), chunks, done)).toContain(`event: response.${status}\n`)
})

describe('streams of Gemini', () => {
  test.each<[string, readonly object[], readonly string[]]>([
    [
      'a finish reason and usage with each call',
      [
        chunk(call('f', '{"a":1}', { index: 0, id: 'c1' }), 'tool_calls', 1),
        chunk(call('g', '{}', { index: 0, id: 'c2' }), 'tool_calls', 2),
        chunk({}, 'stop', 3),
      ],
      ['c1 f {"a":1}', 'c2 g {}', 'tool_use 3'],
    ],
    [
      'calls without id at one index',
      [chunk(call('f', '{"a":1}', { index: 0, id: '' }), null, 1), chunk(call('f', '{"a":2}', { index: 0, id: '' }), 'stop', 2)],
      ['tool_call_0 f {"a":1}', 'tool_call_1 f {"a":2}', 'tool_use 2'],
    ],
    [
      'calls without id and index',
      [chunk(call('f', '{"a":1}'), null, 1), chunk(call('g', '{"a":2}'), null, 2), chunk({ content: '' }, 'stop', 3)],
      ['tool_call_0 f {"a":1}', 'tool_call_1 g {"a":2}', 'tool_use 3'],
    ],
    [
      'arguments in parts, each with the name',
      [chunk(call('f', '{"a":'), null, 1), chunk(call('f', '{"b":1}'), null, 2), chunk(call('f', '}'), 'stop', 3)],
      ['tool_call_0 f {"a":{"b":1}}', 'tool_use 3'],
    ],
  ])('with %s have all tool calls for Messages and Responses clients, and in the log', (_title, chunks, expected) => {
    const stream = open('messages')
    const text = run(stream, sse(...chunks), done)
    expect(callsOf(text)).toEqual(expected)
    expect(text.match(/event: message_stop/g)).toHaveLength(1)
    const calls = expected.slice(0, -1)
    expect(stream.facts.toolCalls.map(({ id, name, arguments: json }) => `${id} ${name} ${json}`)).toEqual(calls)
    const native = open('completions')
    run(native, sse(...chunks), done)
    expect(native.facts.toolCalls.map(({ id, name, arguments: json }) => `${id} ${name} ${json}`)).toEqual(calls)
    const completed = new SseScanner().push(Buffer.from(run(open('responses'), sse(...chunks), done))).at(-1)
    const { response } = JSON.parse(parseFields(completed?.raw ?? Buffer.alloc(0)).data ?? '') as {
      response: { output: { call_id: string; name: string; arguments: string }[] }
    }
    expect(response.output.map(({ call_id: id, name, arguments: json }) => `${id} ${name} ${json}`)).toEqual(calls)
  })

  test('that break off after finish reason and usage are complete for Messages clients, unless a guard rejects them', () => {
    const bytes = sse(chunk({ content: 'one' }, 'stop', 3))
    const broken = open('messages')
    const before = broken.push(bytes)
    expect(renderEvents([...before, ...broken.fail('reset')]).toString()).toMatch(/"output_tokens":3[^]*event: message_stop\n[^]*$/)
    const rejected = open('messages')
    const held = rejected.push(bytes)
    expect(renderEvents([...held, ...rejected.fail('no', 'content_filter')]).toString()).not.toContain('message_stop')
  })

  test.each([
    ['an object', { error: { code: 429, message: 'quota', status: 'RESOURCE_EXHAUSTED' } }],
    ['a list', [{ error: { code: 429, message: 'quota', status: 'RESOURCE_EXHAUSTED' } }]],
  ])('report an error as %s, which has the type of its status', (_title, error) => {
    const bytes = Buffer.concat([sse(chunk({ content: 'one' }, null, 1)), sse(error)])
    const stream = open('messages')
    expect(run(stream, bytes)).toMatch(/event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"quota"}}\n\n$/)
    expect(stream.facts.error).toMatchObject({ type: 'rate_limit_error', message: 'quota' })
    expect(run(open('responses'), bytes)).toMatch(/"code":"rate_limit_error","message":"quota","param":null}\n\n$/)
    expect(run(open('completions'), bytes)).toBe(bytes.toString())
  })
})
