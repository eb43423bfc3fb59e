import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { parseJson } from '../common/json.ts'
import type { ClientFormat, JsonObject } from '../common/types.ts'
import { demandOf } from './demand.ts'
import { promptTokensOf } from './prompt.ts'

const PROMPT = { messages: [{ role: 'user', content: '12345678' }] }
const PROMPT_TOKENS = 2
const demand = (more: JsonObject, format?: ClientFormat) => demandOf({ ...PROMPT, ...more }, 'm', undefined, format)

test.each([
  [{}, 1],
  [{ n: 10 }, 10],
  [{ n: 2, best_of: 4 }, 4],
  [{ generationConfig: { candidateCount: 8 } }, 8],
  [{ generation_config: { candidate_count: 8 } }, 8],
  [{ num_generations: 5 }, 5],
  [{ n: 2, generationConfig: { candidateCount: 8 } }, 8],
  [{ n: '3' }, 3],
  [{ n: 1e300 }, 1e300],
  [{ n: 0 }, 1],
  [{ n: -7 }, 1],
  [{ n: null }, 1],
  [{ n: 'many' }, 1],
  [{ n: [9] }, 1],
  [{ N: 9 }, 9],
  [{ parameters: { num_return_sequences: 9 } }, 9],
  [{ prompt: ['a', 'b', 'c'], n: 2 }, 6],
  [{ prompt: [[1, 2], [3]] }, 2],
  [{ prompt: [1, 2, 3] }, 1],
  [{ instances: [{}, {}] }, 2],
])('the answers of %j are %d', (more, answers) => {
  expect(demand(more).answers).toBe(answers)
})

test.each<[ClientFormat | undefined, JsonObject, number]>([
  ['completions', {}, 4096],
  ['completions', { max_tokens: 7 }, 7],
  ['completions', { max_tokens: 0 }, 4096],
  ['completions', { max_tokens: '0' }, 4096],
  ['completions', { max_tokens: 5, max_completion_tokens: 9 }, 9],
  ['completions', { max_tokens: 9, max_completion_tokens: 5 }, 9],
  ['completions', { max_tokens: '7' }, 7],
  ['completions', { max_tokens: 1e300 }, 1e300],
  ['completions', { max_tokens: -1 }, 4096],
  ['completions', { max_tokens: '-1' }, 4096],
  ['completions', { max_tokens: '' }, 4096],
  ['completions', { max_tokens: ' ' }, 4096],
  ['completions', { max_tokens: 'all' }, 4096],
  ['completions', { max_tokens: null }, 4096],
  ['completions', { max_tokens: true }, 4096],
  ['completions', { max_tokens: [7] }, 4096],
  ['completions', { max_output_tokens: 7 }, 4096],
  ['completions', { Max_Tokens: 7 }, 4096],
  ['completions', { max_tokens: 7, maxTokens: 9000 }, 9000],
  ['completions', { max_tokens: 7, options: { num_predict: 9000 } }, 9000],
  ['messages', { max_tokens: 7 }, 7],
  ['messages', { max_completion_tokens: 7 }, 4096],
  ['responses', { max_output_tokens: 7 }, 7],
  ['responses', { max_tokens: 7 }, 4096],
  // Which of them the server of a Detect route reads is not known.
  ...['max_tokens', 'max_output_tokens', 'max_tokens_to_sample', 'max_new_tokens', 'max_gen_len', 'MAX_TOKENS'].flatMap(
    (name): [undefined, JsonObject, number][] => [
      [undefined, { [name]: 7 }, 4096],
      [undefined, { [name]: 9000 }, 9000],
    ],
  ),
  ...[
    ['generationConfig', 'maxOutputTokens'],
    ['generation_config', 'max_output_tokens'],
    ['inferenceConfig', 'maxTokens'],
    ['textGenerationConfig', 'maxTokenCount'],
  ].map(([place = '', name = '']): [undefined, JsonObject, number] => [undefined, { [place]: { [name]: 9000 } }, 9000]),
])('the most output tokens of %s with %j are %p', (format, more, maxTokens) => {
  expect(demand(more, format).maxTokens).toBe(maxTokens)
})

test('a number with more digits than a double holds is read', () => {
  const body = parseJson('{"max_tokens":100000000000000000000000000000,"n":1e400}') as JsonObject
  expect(demandOf(body, 'm', undefined, 'completions')).toMatchObject({ maxTokens: 1e29, answers: Infinity })
})

const data = (length: number): string => 'A'.repeat(length)
const words = (length: number): string => 'word '.repeat(length / 5 + 1).slice(0, length)
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const URL_OF_IT = 'https://example.com/a'

describe('the tokens of a part', () => {
  test.each<[string, JsonObject, number]>([
    ['an image by URL', { type: 'image_url', image_url: { url: URL_OF_IT } }, 1600],
    ['an image at low detail, which most providers ignore', { type: 'image_url', image_url: { url: URL_OF_IT, detail: 'low' } }, 1600],
    ['an image at low detail of Responses', { type: 'input_image', image_url: URL_OF_IT, detail: 'low' }, 1600],
    ['an image of Responses', { type: 'input_image', image_url: URL_OF_IT }, 1600],
    ['an image of Responses by id', { type: 'input_image', file_id: 'file-1' }, 1600],
    ['a small image', { type: 'image_url', image_url: { url: data(4000) } }, 85],
    ['an image of 30 kB', { type: 'image_url', image_url: { url: data(40_000) } }, 300],
    ['a large image', { type: 'image_url', image_url: { url: data(1_000_000) } }, 1600],
    ['an image of Messages', { type: 'image', source: { type: 'base64', media_type: 'image/png', data: data(40_000) } }, 300],
    ['an image in a result of Messages', { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: { data: data(40_000) } }] }, 300],
    ['an image of Gemini', { inlineData: { mimeType: 'image/png', data: data(40_000) } }, 300],
    ['an image of Gemini in its other spelling', { inline_data: { mime_type: 'image/png', data: data(40_000) } }, 300],
    ['an image of Converse', { image: { format: 'png', source: { bytes: data(40_000) } } }, 300],
    ['a text beside an image', { type: 'text', text: data(400), image_url: { url: URL_OF_IT } }, 1700],
    ['a document of Messages', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: data(40_000) } }, 750],
    ['a document by URL', { type: 'document', source: { type: 'url', url: URL_OF_IT } }, 6000],
    ['a document of text', { type: 'document', source: { type: 'text', media_type: 'text/plain', data: data(400) } }, 100],
    ['a file', { type: 'file', file: { file_data: data(40_000) } }, 750],
    ['a file of Responses by id', { type: 'input_file', file_id: 'file-1' }, 6000],
    ['a document of Gemini', { fileData: { mimeType: 'application/pdf', fileUri: URL_OF_IT } }, 6000],
    ['a document of Converse', { document: { format: 'pdf', source: { bytes: data(40_000) } } }, 750],
    ['a document by URL of Gemini without its type', { file_data: { file_uri: URL_OF_IT } }, 1600],
    ['a text in base64', { type: 'document', source: { type: 'base64', media_type: 'text/plain', data: base64(words(3000)) } }, 1000],
    ['a text in base64 that is called PDF', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: base64(words(3000)) } }, 1000],
    ['a file of text', { type: 'file', file: { filename: '', file_data: `data:text/x-yaml;base64,${base64(words(3000))}` } }, 1006],
    ['a text of Gemini', { inlineData: { mimeType: 'text/csv', data: base64(words(3000)) } }, 1000],
    ['a text of 200 bytes in base64', { type: 'document', source: { type: 'base64', media_type: 'text/plain', data: base64(words(198)) } }, 66],
    ['a text in the place of data', { type: 'document', source: { data: words(4000) } }, 1000],
    ['a prompt of tokens', { prompt: Array.from({ length: 50 }, (_, i) => i) }, 50],
    ['arguments whose names are the text', { type: 'tool_use', input: { [words(400)]: '' } }, 100],
    ['audio', { type: 'input_audio', input_audio: { data: data(40_000), format: 'wav' } }, 60],
    ['audio of Gemini', { inlineData: { mimeType: 'audio/wav', data: data(40_000) } }, 60],
    ['video by URL', { type: 'video_url', video_url: { url: URL_OF_IT } }, 2000],
    ['video of Converse', { video: { format: 'mp4', source: { s3Location: { uri: 's3://a/b' } } } }, 2000],
  ])('of %s', (_, part, expected) => {
    expect(promptTokensOf({ messages: [{ role: 'user', content: [part] }] })).toBe(expected)
    expect(promptTokensOf({ messages: [{ role: 'user', content: Array.from({ length: 10 }, () => part) }] })).toBe(10 * expected)
  })
})

test.each<[string, JsonObject, number]>([
  ['tools', { tools: [{ type: 'function', function: { name: 'f', description: '12345678' } }] }, 44],
  ['functions', { functions: [{ name: 'f', parameters: { type: 'object' } }] }, 25],
  ['tools of Converse', { toolConfig: { tools: [{ toolSpec: { name: 'f' } }] } }, 18],
  ['a schema', { response_format: { type: 'json_schema', json_schema: { strict: true, schema: {} } } }, 42],
])('%s count with the names of their members', (_, more, bytes) => {
  expect(promptTokensOf({ ...PROMPT, ...more })).toBe(PROMPT_TOKENS + Math.ceil(bytes / 4))
})

test('names, ids and metadata do not count', () => {
  expect(demand({ model: data(400), user: data(400), metadata: { a: data(400) }, temperature: 1, stream: true }, 'completions').promptTokens).toBe(
    PROMPT_TOKENS,
  )
})

test('a prompt that is nested deeply is read', () => {
  let nested: JsonObject = { text: '12345678' }
  for (let depth = 0; depth < 50_000; depth++) nested = { content: [nested] }
  expect(promptTokensOf(nested)).toBe(PROMPT_TOKENS)
})

test('a Detect request has no member whose long text does not count', () => {
  for (const name of ['user', 'metadata', 'id', 'type', 'signature'])
    expect([name, promptTokensOf({ ...PROMPT, [name]: { a: words(400) } }, false)]).toEqual([name, PROMPT_TOKENS + 100])
})

describe('a client cannot lower the estimate', () => {
  const names = [
    'text', 'content', 'parts', 'type', 'image_url', 'Image_URL', 'image', 'images', 'source', 'data', 'bytes', 'url', 'uri', 'file', 'file_id', 'file_data',
    'document', 'audio', 'video', 'input_audio', 'inlineData', 'inline_data', 'fileData', 'mimeType', 'mime_type', 'media_type', 'detail', 'format', 'input',
    'metadata', 'role', 'user', 'tools', 'x', '__proto__', 'max_new_tokens', 'maxOutputTokens', 'n', 'N', 'prompt', 'generationConfig', 'options',
  ] // prettier-ignore
  const long = [words(4000), data(4000), base64(words(3000)), `data:image/png;base64,${data(4000)}`, `data:text/plain;base64,${base64(words(3000))}`]
  const leaf = fc.oneof(
    fc.constantFrom(
      '',
      'low',
      'text',
      'image',
      'input_image',
      'document',
      'input_file',
      'file',
      'input_audio',
      'image/png',
      'application/pdf',
      'text/plain',
      URL_OF_IT,
      ...long,
    ),
    fc.constantFrom<unknown>(0, 1, -1, 9000, null, true, '7'),
  )
  const { value } = fc.letrec<{ value: unknown; object: JsonObject }>((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, leaf, tie('object'), fc.array(tie('value'), { maxLength: 3 })),
    object: fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 4 }),
  }))
  const request = fc.dictionary(fc.constantFrom('messages', 'contents', 'system', ...names), value, { maxKeys: 4 })

  /** Each object in a value, with a function that returns the whole with another in its place. */
  function* placesIn(
    from: unknown,
    put: (value: unknown) => unknown,
  ): Generator<{ object: Readonly<Record<string, unknown>>; put: (value: unknown) => unknown }> {
    if (Array.isArray(from)) for (const [i, item] of from.entries()) yield* placesIn(item, (to) => put(from.with(i, to)))
    else if (typeof from === 'object' && from !== null) {
      const object = from as Readonly<Record<string, unknown>>
      yield { object, put }
      for (const [name, member] of Object.entries(object)) yield* placesIn(member, (to) => put({ ...object, [name]: to }))
    }
  }
  const formats = ['completions', 'messages', 'responses', undefined] as const
  const whole = (body: unknown): number[] =>
    formats.flatMap((format) => {
      const { promptTokens, maxTokens, answers = 1 } = demandOf(body as JsonObject, 'm', undefined, format)
      return [promptTokens, maxTokens ?? 0, answers]
    })
  const expectNotLess = (changed: unknown, body: unknown): void => {
    const before = whole(body)
    whole(changed).forEach((each, i) => expect(each).toBeGreaterThanOrEqual(before[i] ?? 0))
  }

  test('by a member that it adds to any object of a request', () => {
    fc.assert(
      fc.property(request, fc.constantFrom(...names), value, (body, name, added) => {
        for (const { object, put } of placesIn(body, (to) => to)) if (!Object.hasOwn(object, name)) expectNotLess(put({ ...object, [name]: added }), body)
      }),
      { numRuns: 500 },
    )
  })

  test('by objects and lists around an object', () => {
    fc.assert(
      fc.property(request, fc.constantFrom('x', 'content', 'parts', 'message', 'Source'), (given, name) => {
        // An object of arguments in a list is none, and the format of a medium outside of one is text: no server reads them there.
        const body = JSON.parse(JSON.stringify(given).replaceAll(/"(?:input|format)":/g, '"output":')) as JsonObject
        for (const { object, put } of placesIn(body, (to) => to)) {
          if (object === body) continue
          expectNotLess(put([object]), body)
          expectNotLess(put({ [name]: object }), body)
        }
      }),
      { numRuns: 500 },
    )
  })
})
