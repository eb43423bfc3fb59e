import { describe, expect, test } from '@jest/globals'
import type { ClientFormat, UpstreamFormat } from '../common/types.ts'
import { pair } from './testing.ts'

describe('an error response', () => {
  const openai = '{"error":{"message":"no","type":"invalid_request_error","code":null}}'
  const anthropic = '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
  const google = '[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]'
  const bedrock = '{"Message":"denied"}'
  const rowsOfErrors: readonly (readonly [string, ClientFormat, UpstreamFormat, number, string, unknown])[] = [
    ['of OpenAI passes unchanged to Chat Completions', 'completions', 'completions', 400, openai, undefined],
    ['of OpenAI is translated to Messages', 'messages', 'completions', 400, openai, { type: 'error', error: { type: 'invalid_request_error', message: 'no' } }],
    ['of OpenAI passes unchanged to Responses', 'responses', 'completions', 400, openai, undefined],
    ['of Anthropic is translated to Chat Completions', 'completions', 'messages', 529, anthropic, { error: { type: 'server_error', message: 'busy' } }],
    [
      'of OpenAI with a type that Messages clients do not know has the type of its status',
      'messages',
      'completions',
      529,
      '{"error":{"message":"busy","type":"insufficient_capacity"}}',
      { type: 'error', error: { type: 'overloaded_error', message: 'busy' } },
    ],
    ...(
      [
        [400, 'invalid_request_error'],
        [401, 'authentication_error'],
        [404, 'not_found_error'],
        [422, 'invalid_request_error'],
        [429, 'rate_limit_error'],
        [500, 'server_error'],
        [503, 'server_error'],
      ] as const
    ).map(
      ([status, type]) =>
        [
          `of Bedrock with status ${status} has type ${type} for Responses`,
          'responses',
          'converse',
          status,
          bedrock,
          { error: { type, message: 'denied' } },
        ] as const,
    ),
    ['of Anthropic passes unchanged to Messages', 'messages', 'messages', 529, anthropic, undefined],
    [
      "Google's list to Chat Completions",
      'completions',
      'completions',
      429,
      google,
      { error: { type: 'rate_limit_error', message: 'quota', param: null, code: 'RESOURCE_EXHAUSTED' } },
    ],
    [
      'of Google in a list is translated to Messages',
      'messages',
      'completions',
      429,
      google,
      { type: 'error', error: { type: 'rate_limit_error', message: 'quota' } },
    ],
    ['of Google passes unchanged to Embeddings', 'embeddings', 'predictEmbeddings', 429, google, undefined],
    ['of Bedrock is translated to Chat Completions', 'completions', 'converse', 403, bedrock, { error: { type: 'permission_error', message: 'denied' } }],
    ['of Bedrock is translated to Messages', 'messages', 'converse', 403, bedrock, { type: 'error', error: { type: 'permission_error', message: 'denied' } }],
    ['of Bedrock is translated to Embeddings', 'embeddings', 'titanEmbeddings', 400, bedrock, { error: { type: 'invalid_request_error', message: 'denied' } }],
    [
      'that is an HTML page becomes the message of a Messages error',
      'messages',
      'completions',
      502,
      '<html>bad</html>',
      { type: 'error', error: { type: 'api_error', message: '<html>bad</html>' } },
    ],
    [
      'that is an HTML page becomes the message of a Chat Completions error',
      'completions',
      'messages',
      404,
      '<html>',
      { error: { type: 'not_found_error', message: '<html>' } },
    ],
    [
      'of vLLM, without a member `error`, gets one on a native path',
      'completions',
      'completions',
      400,
      '{"object":"error","message":"no","type":"BadRequestError","param":null,"code":400}',
      { error: { type: 'invalid_request_error', message: 'no' } },
    ],
    ['that is an HTML page passes unchanged on a native path', 'completions', 'completions', 502, '<html>', undefined],
    [
      'with an empty body becomes a message with the status',
      'messages',
      'messages',
      500,
      '',
      { type: 'error', error: { type: 'api_error', message: 'the upstream returned status 500' } },
    ],
    [
      'of token counting is translated',
      'tokenCount',
      'invokeCount',
      429,
      '{"message":"slow"}',
      { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } },
    ],
  ]
  test.each(rowsOfErrors)('%s', (_name, from, to, status, body, expected) => {
    const written = pair(from, to).error(status, Buffer.from(body))
    expect(written && (JSON.parse(written.body) as unknown)).toEqual(expected)
  })
})
