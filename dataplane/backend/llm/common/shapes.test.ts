import { describe, expect, test } from '@jest/globals'
import { parseJson } from './json.ts'
import { checkShape } from './shapes.ts'
import type { ClientFormat, JsonObject } from './types.ts'

describe('a request is rejected for', () => {
  test.each<[string, ClientFormat, string, string]>([
    ['messages that are text', 'completions', '{"messages":"hi"}', 'messages must be a list'],
    ['messages that are an object', 'messages', '{"messages":{}}', 'messages must be a list'],
    ['a message that is text', 'completions', '{"messages":[{"role":"user","content":"a"},"hi"]}', 'messages[1] must be an object'],
    ['a role that is a number', 'messages', '{"messages":[{"role":5,"content":"a"}]}', 'messages[0].role must be a string'],
    ['content that is a number', 'tokenCount', '{"messages":[{"role":"user","content":5}]}', 'messages[0].content must be a string or a list'],
    ['a stream flag that is text', 'completions', '{"stream":"true"}', 'stream must be true or false'],
    ['a limit that is text', 'messages', '{"max_tokens":"10"}', 'max_tokens must be a number'],
    ['a system prompt that is a number', 'messages', '{"system":1}', 'system must be a string or a list'],
    ['input that is a number', 'responses', '{"input":1}', 'input must be a string or a list'],
    ['input that is an object', 'embeddings', '{"input":{}}', 'input must be a string or a list'],
    ['tools that are text', 'responses', '{"tools":"all"}', 'tools must be a list'],
  ])('%s', (_, format, body, message) => {
    expect(() => checkShape(format, parseJson(body) as JsonObject)).toThrow(`failed to parse request: ${message}`)
  })
})

test.each<[string, ClientFormat, string]>([
  ['no fields', 'completions', '{}'],
  ['nulls', 'completions', '{"messages":[{"role":"assistant","content":null}],"stream":null,"stop":null,"max_tokens":null}'],
  ['numbers that a double cannot represent', 'completions', '{"messages":[],"max_tokens":12345678901234567890,"temperature":0.10000000000000000001}'],
  ['fields of other formats', 'embeddings', '{"input":[1,2],"messages":"x","stream":"x"}'],
])('a request with %s is accepted', (_, format, body) => expect(() => checkShape(format, parseJson(body) as JsonObject)).not.toThrow())
