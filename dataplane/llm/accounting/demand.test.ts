import { describe, expect, test } from '@jest/globals'
import { parseJson } from '../common/json.ts'
import type { JsonObject } from '../common/types.ts'
import { demandOf, promptTokensOf } from './demand.ts'

const PROMPT = { messages: [{ role: 'user', content: '12345678' }] }
const PROMPT_TOKENS = 2
const demand = (more: JsonObject) => demandOf({ ...PROMPT, ...more }, 'm', undefined)

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
])('the answers of %j are %d', (more, answers) => {
  expect(demand(more).answers).toBe(answers)
})

test.each([
  [{}, undefined],
  [{ max_tokens: 7 }, 7],
  [{ max_tokens: 0 }, 0],
  [{ max_tokens: 5, max_completion_tokens: 9 }, 9],
  [{ max_tokens: 9, max_completion_tokens: 5 }, 9],
  [{ max_output_tokens: 7 }, 7],
  [{ max_tokens_to_sample: 7 }, 7],
  [{ max_new_tokens: 7 }, 7],
  [{ max_gen_len: 7 }, 7],
  [{ generationConfig: { maxOutputTokens: 7 } }, 7],
  [{ inferenceConfig: { maxTokens: 7 } }, 7],
  [{ textGenerationConfig: { maxTokenCount: 7 } }, 7],
  [{ max_tokens: 1, inferenceConfig: { maxTokens: 7 } }, 7],
  [{ max_tokens: '7' }, 7],
  [{ max_tokens: 1e300 }, 1e300],
  [{ max_tokens: -1 }, undefined],
  [{ max_tokens: '-1' }, undefined],
  [{ max_tokens: '' }, undefined],
  [{ max_tokens: ' ' }, undefined],
  [{ max_tokens: 'all' }, undefined],
  [{ max_tokens: null }, undefined],
  [{ max_tokens: true }, undefined],
  [{ max_tokens: [7] }, undefined],
])('the most output tokens of %j are %p', (more, maxTokens) => {
  expect(demand(more).maxTokens).toBe(maxTokens)
})

test('a number with more digits than a double holds is read', () => {
  const body = parseJson('{"max_tokens":100000000000000000000000000000,"n":1e400}') as JsonObject
  expect(demandOf(body, 'm', undefined)).toMatchObject({ maxTokens: 1e29, answers: Infinity })
})

const data = (length: number): string => 'A'.repeat(length)
const URL_OF_IT = 'https://example.com/a'

describe('the tokens of a part', () => {
  test.each<[string, JsonObject, number]>([
    ['an image by URL', { type: 'image_url', image_url: { url: URL_OF_IT } }, 1600],
    ['an image at low detail', { type: 'image_url', image_url: { url: URL_OF_IT, detail: 'low' } }, 85],
    ['an image at low detail of Responses', { type: 'input_image', image_url: URL_OF_IT, detail: 'low' }, 85],
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
    ['a text beside an image', { type: 'text', text: data(400), image_url: { detail: 'low' } }, 185],
    ['a document of Messages', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: data(40_000) } }, 750],
    ['a document by URL', { type: 'document', source: { type: 'url', url: URL_OF_IT } }, 6000],
    ['a document of text', { type: 'document', source: { type: 'text', media_type: 'text/plain', data: data(400) } }, 100],
    ['a file', { type: 'file', file: { file_data: data(40_000) } }, 750],
    ['a file of Responses by id', { type: 'input_file', file_id: 'file-1' }, 6000],
    ['a document of Gemini', { fileData: { mimeType: 'application/pdf', fileUri: URL_OF_IT } }, 6000],
    ['a document of Converse', { document: { format: 'pdf', name: 'n', source: { bytes: data(40_000) } } }, 750],
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
  expect(demand({ model: data(400), user: data(400), metadata: { a: data(400) }, temperature: 1, stream: true }).promptTokens).toBe(PROMPT_TOKENS)
})

test('a prompt that is nested deeply is read', () => {
  let nested: JsonObject = { text: '12345678' }
  for (let depth = 0; depth < 50_000; depth++) nested = { content: [nested] }
  expect(promptTokensOf(nested)).toBe(PROMPT_TOKENS)
})
