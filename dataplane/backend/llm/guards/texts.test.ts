import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { Regex } from '#gen/config/types.ts'
import { HeaderList } from '../../../http/headers.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { clientFormats } from '../formats/index.ts'
import type { ChatFormat, JsonObject } from '../common/types.ts'
import { compilePatterns } from './patterns.ts'
import { BodySubject } from './subject.ts'
import { collectRequestTexts } from './texts.ts'

const subject = (phase: 'Request' | 'Response', format: ChatFormat, body: JsonObject) =>
  new BodySubject(phase, body, clientFormats[format], testExchange(), new HeaderList())

function mask(
  phase: 'Request' | 'Response',
  format: ChatFormat,
  body: JsonObject,
  config: Pick<Regex, 'matches' | 'builtins'> = { builtins: ['Ssn'] },
): JsonObject {
  const patterns = compilePatterns(config)
  if (typeof patterns === 'string') throw new Error(patterns)
  const checked = subject(phase, format, body)
  const before = JSON.stringify(body)
  const found = runSync(subject(phase, format, body).hasHit(patterns))
  expect(runSync(checked.mask(patterns))).toBe(found)
  expect(JSON.stringify(body)).toBe(before)
  return checked.body
}

const S = '123-45-6789'
const text = (value: string): JsonObject => ({ type: 'text', text: value })

/** Bodies with the secret in each text; `#` stands for it. */
const requests: Readonly<Record<string, readonly [ChatFormat, JsonObject]>> = {
  'a string of a content list': ['completions', { messages: [{ role: 'user', content: ['#'] }] }],
  'a content object': ['completions', { messages: [{ role: 'user', content: text('#') }] }],
  'the result of a tool': ['completions', { messages: [{ role: 'tool', content: '#' }] }],
  'the name of a participant': ['completions', { messages: [{ role: 'user', name: '#', content: 'x' }] }],
  'the refusal of an earlier turn': ['completions', { messages: [{ role: 'assistant', refusal: '#' }] }],
  reasoning_content: ['completions', { messages: [{ role: 'assistant', content: 'x', reasoning_content: '#' }] }],
  reasoning: ['completions', { messages: [{ role: 'assistant', content: 'x', reasoning: '#' }] }],
  reasoning_details: ['completions', { messages: [{ role: 'assistant', content: 'x', reasoning_details: [{ type: 'reasoning.text', text: '#' }] }] }],
  'the name of a called function': ['completions', { messages: [{ role: 'assistant', tool_calls: [{ id: '1', function: { name: '#', arguments: '{}' } }] }] }],
  'the arguments of a function': [
    'completions',
    { messages: [{ role: 'assistant', tool_calls: [{ id: '1', function: { name: 'f', arguments: '{"a":["#"]}' } }] }] },
  ],
  'the name of an argument': ['completions', { messages: [{ role: 'assistant', tool_calls: [{ id: '1', function: { name: 'f', arguments: '{"#":1}' } }] }] }],
  'the input of a custom tool': ['completions', { messages: [{ role: 'assistant', tool_calls: [{ id: '1', custom: { name: 'f', input: 'run #' } }] }] }],
  'the description of a tool': ['completions', { messages: [], tools: [{ type: 'function', function: { name: 'f', description: '#' } }] }],
  'the description of a parameter': [
    'completions',
    { messages: [], tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: { description: 'x #' } } } } }] },
  ],
  'the name of a parameter': ['completions', { messages: [], tools: [{ function: { name: 'f', parameters: { properties: { '#': {} }, required: ['#'] } } }] }],
  'a schema of the response': ['completions', { messages: [], response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { title: '#' } } } }],
  'the grammar of a custom tool': [
    'completions',
    { messages: [], tools: [{ type: 'custom', custom: { name: 'f', format: { type: 'grammar', grammar: { syntax: 'lark', definition: '#' } } } }] },
  ],
  'a legacy function': ['completions', { messages: [], functions: [{ name: '#', description: '#', parameters: { properties: { a: { description: '#' } } } }] }],
  'an example of a tool': ['messages', { messages: [], tools: [{ name: 'f', input_examples: [{ a: '#' }] }] }],
  'the format of a response': ['responses', { input: 'x', text: { format: { type: 'json_schema', name: 'x', description: '#', schema: { title: '#' } } } }],
  'the description of a server': ['responses', { input: 'x', tools: [{ type: 'mcp', server_label: '#', server_description: '#', server_url: 'https://x' }] }],
  'a call of a server': ['responses', { input: [{ type: 'mcp_call', name: 'f', arguments: '{"a":"#"}', output: '#' }] }],
  'a prediction': ['completions', { messages: [], prediction: { type: 'content', content: '#' } }],
  'a prompt beside messages': ['completions', { messages: [], prompt: '#' }],
  'an input beside messages': ['completions', { messages: [], input: ['#'] }],
  'the name of a file': ['completions', { messages: [{ role: 'user', content: [{ type: 'file', file: { filename: '#', file_data: 'x' } }] }] }],
  'a system block': ['messages', { system: [text('#')], messages: [] }],
  'a text document': [
    'messages',
    { messages: [{ role: 'user', content: [{ type: 'document', title: '#', source: { type: 'text', media_type: 'text/plain', data: '#' } }] }] },
  ],
  'a document of blocks': ['messages', { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'content', content: [text('#')] } }] }] }],
  'a search result': ['messages', { messages: [{ role: 'user', content: [{ type: 'search_result', source: 'x', title: '#', content: [text('#')] }] }] }],
  'a cited text': ['messages', { messages: [{ role: 'assistant', content: [{ ...text('x'), citations: [{ type: 'char_location', cited_text: '#' }] }] }] }],
  'a tool_result string': ['messages', { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x', content: '#' }] }] }],
  'a tool_result list': ['messages', { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x', content: [text('#')] }] }] }],
  'the input of a tool_use': ['messages', { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'x', name: 'f', input: { a: '#' } }] }] }],
  'an input_schema': ['messages', { messages: [], tools: [{ name: 'f', description: '#', input_schema: { properties: { a: { enum: ['#'] } } } }] }],
  instructions: ['responses', { instructions: '#', input: 'x' }],
  'an input string': ['responses', { input: '#' }],
  'an item': ['responses', { input: [{ role: 'user', content: [{ type: 'input_text', text: '#' }] }] }],
  'an item without role': ['responses', { input: [{ type: 'message', content: '#' }] }],
  'the output of a function': ['responses', { input: [{ type: 'function_call_output', call_id: 'x', output: '#' }] }],
  'the output of a shell': ['responses', { input: [{ type: 'shell_call_output', call_id: 'x', output: [{ stdout: '#' }] }] }],
  'an item of reasoning': [
    'responses',
    { input: [{ type: 'reasoning', id: 'x', summary: [{ type: 'summary_text', text: '#' }], content: [{ type: 'reasoning_text', text: '#' }] }] },
  ],
  'a variable of a prompt': ['responses', { prompt: { id: 'x', variables: { a: '#', b: { type: 'input_text', text: '#' } } } }],
}

describe('a request guard looks at', () => {
  test.each(Object.entries(requests))('%s', (_, [format, body]) => {
    const fill = (value: string): JsonObject => JSON.parse(JSON.stringify({ model: 'm', ...body }).replaceAll('#', value)) as JsonObject
    expect(mask('Request', format, fill(S))).toEqual(fill('<SSN>'))
  })
})

describe('a request guard leaves alone', () => {
  const url = `https://x/${S}`
  test.each<[string, JsonObject]>([
    ['settings', { model: S, user: S, metadata: { a: S }, stop: [S], prompt_cache_key: S, messages: [] }],
    ['ids', { messages: [{ role: 'tool', tool_call_id: S, content: 'x' }] }],
    [
      'addresses and data of media',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image_url', image_url: { url } },
              { type: 'input_audio', input_audio: { data: S } },
            ],
          },
        ],
      },
    ],
  ])('%s', (_, body) => {
    expect(mask('Request', 'completions', body)).toBe(body)
  })
})

describe('a text that is split', () => {
  const user = (...content: unknown[]): JsonObject => ({ messages: [{ role: 'user', content }] })

  test.each<[string, JsonObject, JsonObject]>([
    ['over parts is masked in the last', user(text('is 123-45'), text('-6789.')), user(text('is <SSN>.'))],
    ['over strings is masked in the last', user('is 123-', '45', '-6789.'), user('is <SSN>.')],
    ['over parts, beside a complete one, is masked', user(text(`${S} 123-4`), text(`5-6789 ${S}`)), user(text('<SSN> <SSN> <SSN>'))],
    ['by an image is not joined', user(text('123-45'), { type: 'image_url' }, text('-6789')), user(text('123-45'), { type: 'image_url' }, text('-6789'))],
  ])('%s', (_, body, expected) => {
    expect(mask('Request', 'completions', body)).toEqual(expected)
  })

  const messages = (role: string, ...contents: unknown[]): JsonObject => ({ messages: contents.map((content) => ({ role, content })) })

  test('over adjacent messages of one role is masked in each', () => {
    expect(mask('Request', 'messages', messages('user', `${S} is 123-`, '45', [text('-6789 x')]))).toEqual(
      messages('user', '<SSN> is <SSN>', '<SSN>', [text('<SSN> x')]),
    )
  })

  test('over results of tools is not joined', () => {
    const body = messages('tool', '123-45', '-6789')
    expect(mask('Request', 'completions', body)).toBe(body)
  })

  test('is found at its ends by a pattern that depends on them', () => {
    expect(mask('Request', 'completions', messages('user', 'secret', 'a secret'), { matches: ['^secret$'] })).toEqual(messages('user', '<masked>', 'a secret'))
  })
})

describe('a masked response keeps nothing that repeats the text:', () => {
  const choice = (content: string, rest: JsonObject, message: JsonObject = {}): JsonObject => ({
    choices: [{ index: 0, ...rest, message: { role: 'assistant', content, ...message } }],
  })
  const output = (part: JsonObject, rest: JsonObject = {}): JsonObject => ({ output: [{ type: 'message', role: 'assistant', content: [part] }], ...rest })

  test.each<[string, ChatFormat, JsonObject, JsonObject]>([
    [
      'logprobs and annotations of a choice',
      'completions',
      choice(`ssn ${S}.`, { logprobs: { content: [{ token: S }] } }, { annotations: [{ type: 'url_citation', url_citation: { title: 'x' } }] }),
      choice('ssn <SSN>.', {}, { annotations: [] }),
    ],
    [
      'an audio',
      'completions',
      choice('', {}, { audio: { id: 'x', data: 'AAAA', transcript: S } }),
      choice('', {}, { audio: { id: 'x', data: '', transcript: '<SSN>' } }),
    ],
    [
      'logprobs, annotations and output_text of an item',
      'responses',
      output({ type: 'output_text', text: S, annotations: [{}], logprobs: [{ token: S }] }, { output_text: S }),
      output({ type: 'output_text', text: '<SSN>', annotations: [] }),
    ],
    [
      'the signature of thinking',
      'messages',
      { content: [{ type: 'thinking', thinking: `x ${S}`, signature: 'abc' }] },
      { content: [{ type: 'thinking', thinking: 'x <SSN>', signature: '' }] },
    ],
    [
      'the signature of reasoning',
      'completions',
      choice('', {}, { reasoning_content: S, reasoning_signature: 'abc' }),
      choice('', {}, { reasoning_content: '<SSN>', reasoning_signature: '' }),
    ],
    [
      'the encrypted content of a reasoning item',
      'responses',
      { output: [{ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: S }], encrypted_content: 'signature:abc' }] },
      { output: [{ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: '<SSN>' }], encrypted_content: null }] },
    ],
    [
      'a citation',
      'messages',
      { content: [{ ...text('x'), citations: [{ cited_text: S, document_title: S }] }] },
      { content: [{ ...text('x'), citations: [{ cited_text: '<SSN>', document_title: '<SSN>' }] }] },
    ],
    ['reasoning', 'completions', choice('x', {}, { reasoning_content: S, reasoning: S }), choice('x', {}, { reasoning_content: '<SSN>', reasoning: '<SSN>' })],
    ['a refusal', 'completions', choice('', {}, { refusal: S }), choice('', {}, { refusal: '<SSN>' })],
    [
      'an item of reasoning',
      'responses',
      { output: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: S }] }] },
      { output: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: '<SSN>' }] }] },
    ],
  ])('%s', (_, format, body, expected) => {
    expect(mask('Response', format, body)).toEqual(expected)
  })

  test.each<ChatFormat>(['completions', 'messages', 'responses'])('JSON of another shape, which passes to clients of %s if no attempt is left', (format) => {
    const masked = (one: string): JsonObject => ({ id: S, text: one, error: { message: `x ${one}`, code: 5 }, made_up: [{ role: 'x', content: one }] })
    expect(mask('Response', format, masked(S))).toEqual(masked('<SSN>'))
  })

  test('logprobs of a response without a hit stay', () => {
    const body = choice('fine', { logprobs: { content: [{ token: 'fine' }] } })
    expect(mask('Response', 'completions', body)).toBe(body)
  })
})

describe('texts for a guard service', () => {
  test('are all texts in order, with system prompts first', () => {
    const body = {
      tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: [text('a'), text('b')] },
        { role: 'assistant', content: [{ type: 'thinking', thinking: 't' }, text('c')] },
      ],
      system: 's',
    }
    expect(runSync(subject('Request', 'messages', body).texts())).toEqual(['s', '{"type":"object"}', 'f', 'd', 'a b', 'c', 't'])
  })

  test('of any body can be collected and replaced', () => {
    const object = fc.dictionary(
      fc.constantFrom('messages', 'input', 'content', 'role', 'type', 'text', 'tools', 'arguments', 'parameters', 'output', 'choices', 'message', 'x'),
      fc.letrec((tie) => ({
        value: fc.oneof(
          { depthSize: 'small' },
          fc.string(),
          fc.integer(),
          fc.constant(null),
          fc.array(tie('value')),
          fc.dictionary(fc.constantFrom('content', 'role', 'type', 'text', 'input'), tie('value')),
        ),
      })).value,
    ) as fc.Arbitrary<JsonObject>
    fc.assert(
      fc.property(
        fc.constantFrom('Request' as const, 'Response' as const),
        fc.constantFrom('completions' as const, 'messages' as const, 'responses' as const),
        object,
        (phase, format, body) => {
          const checked = subject(phase, format, body)
          const texts = runSync(checked.texts())
          checked.replaceTexts(texts.map(() => 'x'))
          expect(checked.body === body).toBe(texts.every((each) => each === 'x'))
        },
      ),
    )
  })

  test('nested deeply are collected', () => {
    let body: JsonObject = { content: S }
    for (let depth = 0; depth < 3000; depth++) body = { x: [body] }
    expect(runSync(subject('Request', 'completions', { messages: [body] }).texts())).toEqual([S])
  })
})

describe('text files in base64', () => {
  const base64 = (content: string | Buffer): string => Buffer.from(content).toString('base64')
  const content = `name,number\nbob,${S}\n`
  const files: Readonly<Record<string, readonly [ChatFormat, (data: string) => JsonObject, string]>> = {
    'a file part': ['completions', (data) => ({ messages: [{ role: 'user', content: [{ type: 'file', file: { filename: 'a.csv', file_data: data } }] }] }), ''],
    'a file part with a data URL': [
      'completions',
      (data) => ({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: data } }] }] }),
      'data:text/csv;base64,',
    ],
    'an input_file': ['responses', (data) => ({ input: [{ role: 'user', content: [{ type: 'input_file', file_data: data }] }] }), 'data:text/plain;base64,'],
    'a document source': [
      'messages',
      (data) => ({ messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'base64', media_type: 'text/plain', data } }] }] }),
      '',
    ],
  }

  test.each(Object.entries(files))('of %s is masked and encoded again', (_, [format, body, prefix]) => {
    const masked = mask('Request', format, body(prefix + base64(content)))
    expect(masked).toEqual(body(prefix + base64(content.replace(S, '<SSN>'))))
  })

  test.each<[string, string]>([
    ['a PDF', base64(Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.from([0xe2, 0xe3, 0xcf, 0xd3]), Buffer.from(content)]))],
    ['bytes with NUL', base64(`${S}\0`)],
    ['a data URL of an image', `data:image/svg+xml;base64,${base64(content)}`],
  ])('of %s are left alone', (_, data) => {
    const body = { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: data } }] }] }
    expect(mask('Request', 'completions', body)).toBe(body)
  })

  test('of some megabytes is decoded in slices', () => {
    const long = `${'x'.repeat(3 * 1024 * 1024)} é ${S}`
    const steps = collectRequestTexts({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: base64(long) } }] }] }, 'completions')
    let slices = 0
    let result = steps.next()
    for (; result.done !== true; result = steps.next()) slices++
    expect(slices).toBeGreaterThan(10)
    expect(result.value[0]?.parts[0]?.text.endsWith(`é ${S}`)).toBe(true)
  })
})
