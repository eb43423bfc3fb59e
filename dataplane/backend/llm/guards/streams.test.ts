import { describe, expect, test } from '@jest/globals'
import type { PromptguardResponse } from '#gen/config/types.ts'
import { HeaderList } from '../../../http/headers.ts'
import { createPolicyState } from '../../../policy/state.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { pair, responseContext } from '../convert/testing.ts'
import { clientFormats } from '../formats/index.ts'
import type { ChatFormat } from '../common/types.ts'
import { compileGuards } from './index.ts'
import { StreamSubject } from './subject.ts'
import { StreamRejection, type PromptGuards } from './types.ts'

const SECRET = '123-45-6789'
const event = (type: string | undefined, data: object | string): string =>
  `${type === undefined ? '' : `event: ${type}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const halves = (text: string): [string, string] => [text.slice(0, text.length - 5), text.slice(-5)]

/** A streamed response of each format with a text and a tool call, each in two pieces. */
const upstreamResponses: Readonly<Record<ChatFormat, (text: string, input: string) => string>> = {
  completions(text, input) {
    const chunk = (delta: object, finish: string | null = null) =>
      event(undefined, { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })
    const call = (part: object) => chunk({ tool_calls: [{ index: 0, ...part }] })
    const [a, b] = halves(text)
    const [c, d] = halves(input)
    return [
      chunk({ role: 'assistant', content: a }),
      chunk({ content: b }),
      call({ id: 't', type: 'function', function: { name: 'f', arguments: c } }),
      call({ function: { arguments: d } }),
      chunk({}, 'tool_calls'),
      event(undefined, '[DONE]'),
    ].join('')
  },
  gemini(text, input) {
    const piece = (part: object, more: object = {}) =>
      event(undefined, { candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...more }], modelVersion: 'm' })
    return [...halves(text).map((one) => piece({ text: one })), piece({ functionCall: { name: 'f', args: JSON.parse(input) } }, { finishReason: 'STOP' })].join(
      '',
    )
  },
  messages(text, input) {
    const block = (index: number, start: object, deltas: object[]) => [
      event('content_block_start', { type: 'content_block_start', index, content_block: start }),
      ...deltas.map((delta) => event('content_block_delta', { type: 'content_block_delta', index, delta })),
      event('content_block_stop', { type: 'content_block_stop', index }),
    ]
    return [
      event('message_start', {
        type: 'message_start',
        message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } },
      }),
      ...block(
        0,
        { type: 'text', text: '' },
        halves(text).map((part) => ({ type: 'text_delta', text: part })),
      ),
      ...block(
        1,
        { type: 'tool_use', id: 't', name: 'f', input: {} },
        halves(input).map((part) => ({ type: 'input_json_delta', partial_json: part })),
      ),
      event('message_delta', { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 2 } }),
      event('message_stop', { type: 'message_stop' }),
    ].join('')
  },
  responses(text, input) {
    const of = (type: string, rest: object) => event(type, { type, ...rest })
    const at = { item_id: 'i', output_index: 0, content_index: 0 }
    const call = { item_id: 'j', output_index: 1 }
    const message = { id: 'i', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }
    const tool = { id: 'j', type: 'function_call', call_id: 't', name: 'f', status: 'completed', arguments: input }
    return [
      of('response.created', { response: { id: 'r', object: 'response', status: 'in_progress', output: [] } }),
      of('response.output_item.added', { output_index: 0, item: { ...message, status: 'in_progress', content: [] } }),
      of('response.content_part.added', { ...at, part: { type: 'output_text', text: '', annotations: [] } }),
      ...halves(text).map((delta) => of('response.output_text.delta', { ...at, delta })),
      of('response.output_text.done', { ...at, text }),
      of('response.content_part.done', { ...at, part: message.content[0] }),
      of('response.output_item.done', { output_index: 0, item: message }),
      of('response.output_item.added', { output_index: 1, item: { ...tool, status: 'in_progress', arguments: '' } }),
      ...halves(input).map((delta) => of('response.function_call_arguments.delta', { ...call, delta })),
      of('response.function_call_arguments.done', { ...call, arguments: input }),
      of('response.output_item.done', { output_index: 1, item: tool }),
      of('response.completed', {
        response: { id: 'r', object: 'response', status: 'completed', output: [message, tool], usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } },
      }),
    ].join('')
  },
}

const formats = Object.keys(upstreamResponses) as ChatFormat[]
const text = `my number is ${SECRET}, keep it`
const input = JSON.stringify({ note: `ssn ${SECRET}`, n: 1 })

const compile = (...response: PromptguardResponse[]) => compileGuards({ response }, { destinations: {} as never, state: createPolicyState() })

/** The client's bytes of a stream that is split into `pieces`. */
async function send(format: ChatFormat, guards: PromptGuards | undefined, pieces: readonly Buffer[]): Promise<string> {
  const guard = guards?.stream({ exchange: testExchange(), entry: clientFormats[format], isStreaming: true }, new HeaderList())
  const stream = pair(format, format).stream(responseContext(), { isGuarded: true })
  const out: Buffer[] = []
  for (const piece of pieces) for (const passed of (await guard?.push(stream.push(piece))) ?? []) out.push(passed.toBytes())
  for (const passed of [...((await guard?.push(stream.end())) ?? []), ...((await guard?.end()) ?? [])]) out.push(passed.toBytes())
  return Buffer.concat(out).toString()
}

describe.each(formats)('a stream in the %s format', (format) => {
  const upstreamBytes = Buffer.from(upstreamResponses[format](text, input))
  const guards = compile({ regex: { builtins: ['Ssn'] } })

  test('split at every byte never contains masked text or tool input, and always yields the same bytes', async () => {
    const expected = await send(format, guards, [upstreamBytes])
    expect(expected).toContain('<SSN>')
    for (let at = 1; at < upstreamBytes.length; at++) {
      const received = await send(format, guards, [upstreamBytes.subarray(0, at), upstreamBytes.subarray(at)])
      expect(received).toBe(expected)
    }
    // The secret is spread over events; no event may contain any of its digits.
    expect(expected).not.toMatch(/123|6789/)
  })

  test('that arrives byte by byte is masked', async () => {
    const bytes = Array.from(upstreamBytes, (_, at) => upstreamBytes.subarray(at, at + 1))
    expect(await send(format, guards, bytes)).toBe(await send(format, guards, [upstreamBytes]))
  })

  test('without a match has the text of the upstream', async () => {
    const clean = Buffer.from(upstreamResponses[format]('nothing to see here', '{"a":1}'))
    const texts = (received: string): unknown[] =>
      received
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map((line) => JSON.parse(line.slice(6)) as unknown)
    expect(texts(await send(format, guards, [clean]))).toEqual(texts(clean.toString()))
  })

  test('is rejected if a guard does not compile', async () => {
    await expect(send(format, compile({ regex: { matches: ['('] } }), [upstreamBytes])).rejects.toThrow('prompt guard failed')
  })
})

test('a held back stream that is rejected contains no text', async () => {
  const compiled = compile({ regex: { builtins: ['Ssn'] } }, { regex: { matches: ['('] } })
  const guard = compiled?.stream({ exchange: testExchange(), entry: clientFormats.completions, isStreaming: true }, new HeaderList())
  const stream = pair('completions', 'completions').stream(responseContext(), { isGuarded: true })
  expect(await guard?.push(stream.push(Buffer.from(upstreamResponses.completions(text, input))))).toEqual([])
  await expect(Promise.resolve(guard?.end())).rejects.toThrow('prompt guard failed')
})

test('a held back stream ends with an error at the size limit', async () => {
  const compiled = compile({ regex: { matches: ['('] } })
  const guard = compiled?.stream({ exchange: testExchange(), entry: clientFormats.completions, isStreaming: true }, new HeaderList())
  const event3mb = { deltas: [], others: [], closes: [], toBytes: () => Buffer.alloc(3 * 1024 * 1024) }
  expect(() => guard?.push([event3mb])).toThrow(StreamRejection)
})

describe('a masked stream keeps nothing that repeats the text:', () => {
  const guards = compile({ regex: { builtins: ['Ssn'] } })
  const chunk = (delta: object, rest: object = {}) => event(undefined, { choices: [{ index: 0, delta, ...rest }] })
  const tokens = (...texts: string[]) => ({ logprobs: { content: texts.map((token) => ({ token, logprob: 0 })) } })
  const typed = (type: string, rest: object) => event(type, { type, ...rest })
  const end = { index: 0, output_index: 0, content_index: 0, item_id: 'i' }
  const blocks = [
    { type: 'tool_use', id: 't', name: SECRET, input: { [SECRET]: [SECRET] } },
    { type: 'code_execution_tool_result', tool_use_id: 't', content: { type: 'code_execution_result', stdout: SECRET, stderr: SECRET, return_code: 0 } },
    { type: 'mcp_tool_result', tool_use_id: 't', content: [{ type: 'text', text: SECRET }] },
    { type: 'web_fetch_tool_result', content: { type: 'web_fetch_result', content: { type: 'document', source: { type: 'text', data: SECRET } } } },
  ]
  const items = [
    { type: 'function_call', id: 't', call_id: 't', name: SECRET, arguments: '{}' },
    { type: 'web_search_call', id: 'w', action: { type: 'search', query: SECRET } },
    { type: 'file_search_call', id: 'f', queries: [SECRET], results: [{ text: SECRET, filename: SECRET }] },
    { type: 'code_interpreter_call', id: 'c', code: '', outputs: [{ type: 'logs', logs: SECRET }] },
    { type: 'mcp_call', id: 'm', name: 'f', arguments: '{}', error: SECRET },
    { type: 'made_up', text: { value: SECRET } },
  ]

  test.each<[string, ChatFormat, string[]]>([
    [
      'logprobs of a chunk',
      'completions',
      [chunk({ content: 'x 123-45' }, tokens('x ', '123-45')), chunk({ content: '-6789' }, tokens('-6789')), chunk({}, { finish_reason: 'stop' })],
    ],
    [
      'logprobs that are late',
      'completions',
      [chunk({ content: SECRET }), chunk({ content: ' ok' }, tokens(SECRET, ' ok')), chunk({}, { finish_reason: 'stop' })],
    ],
    ['reasoning', 'completions', [chunk({ reasoning_content: '123-45' }), chunk({ reasoning_content: '-6789' }), chunk({}, { finish_reason: 'stop' })]],
    ['a refusal', 'completions', [chunk({ refusal: '123-45' }), chunk({ refusal: '-6789' }), chunk({}, { finish_reason: 'stop' })]],
    [
      'a transcript and its audio',
      'completions',
      [
        chunk({ audio: { transcript: '123-45' } }),
        chunk({ audio: { transcript: '-6789 ' } }),
        chunk({ audio: { data: 'MTIzNDU2Nzg5' } }),
        chunk({}, { finish_reason: 'stop' }),
      ],
    ],
    [
      'thinking and its signature',
      'messages',
      [
        typed('content_block_start', { ...end, content_block: { type: 'thinking', thinking: '', signature: '' } }),
        typed('content_block_delta', { ...end, delta: { type: 'thinking_delta', thinking: '123-45' } }),
        typed('content_block_delta', { ...end, delta: { type: 'thinking_delta', thinking: '-6789' } }),
        typed('content_block_delta', { ...end, delta: { type: 'signature_delta', signature: 'MTIzNDU2Nzg5' } }),
        typed('content_block_stop', end),
      ],
    ],
    [
      'a citation',
      'messages',
      [typed('content_block_delta', { ...end, delta: { type: 'citations_delta', citation: { cited_text: SECRET, document_title: SECRET } } })],
    ],
    [
      'logprobs of a delta and of its repetitions',
      'responses',
      [
        typed('response.output_text.delta', { ...end, delta: '123-45', logprobs: [{ token: '123-45' }] }),
        typed('response.output_text.delta', { ...end, delta: '-6789', logprobs: [{ token: '-6789' }] }),
        typed('response.output_text.done', { ...end, text: SECRET, logprobs: [{ token: '123-45' }] }),
        typed('response.content_part.done', {
          ...end,
          part: { type: 'output_text', text: SECRET, logprobs: [{ token: SECRET }], annotations: [{ title: SECRET }] },
        }),
        typed('response.completed', {
          response: { output_text: SECRET, output: [{ type: 'message', content: [{ type: 'output_text', text: SECRET, logprobs: [{ token: SECRET }] }] }] },
        }),
      ],
    ],
    [
      'a reasoning summary',
      'responses',
      [typed('response.reasoning_summary_text.delta', { ...end, delta: SECRET }), typed('response.reasoning_summary_text.done', { ...end, text: SECRET })],
    ],
    [
      'an audio transcript',
      'responses',
      [typed('response.audio.transcript.delta', { ...end, delta: '123-45' }), typed('response.audio.transcript.delta', { ...end, delta: '-6789' })],
    ],
    [
      'names of tools, and members that no format has',
      'completions',
      [
        chunk({ tool_calls: [{ index: 0, id: 't', type: 'function', function: { name: SECRET, arguments: '' } }], made_up: { list: [SECRET] } }),
        chunk({ function_call: { name: SECRET } }, { message: { content: SECRET } }),
        chunk({}, { finish_reason: 'stop' }),
      ],
    ],
    ['results and input of tools', 'messages', blocks.map((block) => typed('content_block_start', { ...end, content_block: block }))],
    ['an unknown delta', 'messages', [typed('content_block_delta', { ...end, delta: { type: 'made_up_delta', made_up: SECRET } })]],
    ['content at the start of a message', 'messages', [typed('message_start', { message: { role: 'assistant', content: blocks } })]],
    [
      'items of tools',
      'responses',
      [
        ...items.flatMap((item) => [typed('response.output_item.added', { ...end, item }), typed('response.output_item.done', { ...end, item })]),
        typed('response.completed', { response: { output: items } }),
      ],
    ],
    [
      'commands of a shell and their output',
      'responses',
      [
        typed('response.shell_call_command.added', { output_index: 0, command_index: 0, command: '123-' }),
        typed('response.shell_call_command.delta', { output_index: 0, command_index: 0, delta: '45-6789' }),
        typed('response.shell_call_command.done', { output_index: 0, command_index: 0, command: SECRET }),
        typed('response.shell_call_output_content.delta', { ...end, command_index: 0, delta: { stdout: '123-45', stderr: '123-' } }),
        typed('response.shell_call_output_content.delta', { ...end, command_index: 0, delta: { stdout: '-6789', stderr: '45-6789' } }),
        typed('response.shell_call_output_content.done', { ...end, command_index: 0, output: [{ stdout: SECRET, stderr: SECRET }] }),
      ],
    ],
    ['an event of another shape', 'completions', [typed('content_block_delta', { delta: { type: 'text_delta', text: SECRET } })]],
    ['an event of another shape', 'messages', [chunk({ content: SECRET })]],
    ['an event of another shape', 'responses', [chunk({ content: SECRET })]],
  ])('%s (%s)', async (_, format, events) => {
    const received = await send(
      format,
      guards,
      events.map((each) => Buffer.from(each)),
    )
    expect(received).toContain('<SSN>')
    expect(received).not.toMatch(/123|6789|MTIz/)
  })

  test.each<[string, ChatFormat, string, string]>([
    ['images', 'responses', typed('response.output_item.done', { ...end, item: { type: 'image_generation_call', result: SECRET } }), `"result":"${SECRET}"`],
    [
      'ids and numbers',
      'messages',
      typed('content_block_start', { ...end, content_block: { type: 'made_up', id: SECRET, n: 123456789 } }),
      `"id":"${SECRET}","n":123456789`,
    ],
    ['what the request said', 'responses', typed('response.created', { response: { instructions: SECRET, output: [] } }), `"instructions":"${SECRET}"`],
  ])('%s stay', async (_, format, sent, expected) => {
    expect(await send(format, guards, [Buffer.from(sent)])).toContain(expected)
  })

  test('guard services receive other texts once, and no calls of tools', () => {
    const events = items.flatMap((item) => [typed('response.output_item.added', { ...end, item }), typed('response.output_item.done', { ...end, item })])
    const stream = pair('responses', 'responses').stream(responseContext(), { isGuarded: true })
    const subject = new StreamSubject(stream.push(Buffer.from(events.join(''))), testExchange(), new HeaderList())
    expect(runSync(subject.messages()).map(({ content }) => content)).toEqual([SECRET])
    subject.replaceMessages([{ role: 'assistant', content: 'gone' }])
    expect(runSync(subject.messages()).map(({ content }) => content)).toEqual(['gone'])
  })

  test('logprobs of unchanged text stay', async () => {
    const received = await send('completions', guards, [Buffer.from(chunk({ content: 'fine' }, tokens('fi', 'ne')) + chunk({}, { finish_reason: 'stop' }))])
    expect(received).toContain('"token":"fi"')
  })
})

describe('a stream with a long event', () => {
  const long = (): Buffer => Buffer.from(event(undefined, { choices: [{ index: 0, delta: { content: `${'a@b.c '.repeat(100_000)}${SECRET}, ` } }] }))
  const begin = () => {
    const exchange = testExchange()
    const guard = compile({ regex: { builtins: ['Email', 'Ssn'] } })?.stream(
      { exchange, entry: clientFormats.completions, isStreaming: true },
      new HeaderList(),
    )
    const events = pair('completions', 'completions').stream(responseContext(), { isGuarded: true }).push(long())
    return { exchange, checking: Promise.resolve(guard?.push(events)) }
  }

  test('lets other events be processed while it is masked', async () => {
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    const passed = await begin().checking
    clearInterval(timer)
    expect(turns).toBeGreaterThan(0)
    expect(passed?.[0]?.toBytes().toString()).toContain('<EMAIL_ADDRESS> <SSN>, ')
  })

  test('is not checked any further when the client disconnects', async () => {
    const { exchange, checking } = begin()
    exchange.abort(new Error('the client disconnected'))
    await expect(checking).rejects.toThrow('the client disconnected')
  })
})
