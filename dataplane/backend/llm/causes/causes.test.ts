import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { HeaderList } from '../../../http/headers.ts'
import type { Target } from '../common/types.ts'
import { causeOf } from './index.ts'
import { generic, signals } from './table.ts'
import type { Cause, Scope } from './types.ts'

const NOW = Date.UTC(2026, 0, 1)
const openai = (code: string | number | null, message = 'm', type = 'invalid_request_error') => JSON.stringify({ error: { message, type, param: null, code } })
const anthropic = (type: string, message = 'm', more: object = {}) =>
  JSON.stringify({ type: 'error', error: { type, message, ...more }, request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy' })
const google = (code: number, status: string, message = 'm', details: object[] = []) => JSON.stringify({ error: { code, message, status, details } })
const bedrock = (message: string) => JSON.stringify({ message })
const quota = (quotaId: string) => ({ '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaMetric: 'x', quotaId }] })
const reason = (name: string) => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: name, domain: 'googleapis.com' })

/** Target, what failed, status, body, exception in `x-amzn-errortype`, expected cause and scope. */
type Cell = readonly [Target, string, number, string, string | undefined, Cause, Scope]
const tooLong = (count: number) => `This model's maximum context length is ${count} tokens. However, your messages resulted in ${count + 1} tokens.`

const cells: readonly Cell[] = [
  ['openai', 'a rate limit', 429, openai('rate_limit_exceeded', 'Rate limit reached for gpt-5', 'requests'), undefined, 'RateLimit', 'model'],
  ['openai', 'a ramp that is too steep', 503, openai('slow_down', 'Slow down', 'rate_limit_error'), undefined, 'RateLimit', 'model'],
  ['openai', 'spent credit', 429, openai('credit_balance_exhausted', 'You exceeded your current quota', 'insufficient_quota'), undefined, 'Quota', 'account'],
  ['openai', 'a spend limit', 429, openai('project_spend_limit_exceeded', 'm', 'insufficient_quota'), undefined, 'Quota', 'account'],
  ['openai', 'overload', 503, openai('server_is_overloaded', 'm', 'service_unavailable_error'), undefined, 'Overloaded', 'endpoint'],
  ['openai', 'an error of the server', 500, openai(null, 'The server had an error', 'server_error'), undefined, 'ServerError', 'endpoint'],
  ['openai', 'a long prompt', 400, openai('context_length_exceeded', tooLong(128_000)), undefined, 'ContextLength', 'request'],
  [
    'openai',
    'a request over the tokens of a minute',
    429,
    openai('rate_limit_exceeded', 'Request too large for gpt-5 in organization org on tokens per min (TPM): Limit 30000, Requested 40000.', 'tokens'),
    undefined,
    'ContextLength',
    'request',
  ],
  ['openai', 'a filtered prompt', 400, openai('content_policy_violation'), undefined, 'ContentFilter', 'request'],
  [
    'responses',
    'a flagged prompt',
    400,
    openai('invalid_prompt', 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.'),
    undefined,
    'ContentFilter',
    'request',
  ],
  ['openai', 'an unknown model', 404, openai('model_not_found', 'The model `x` does not exist'), undefined, 'ModelNotFound', 'model'],
  ['openai', 'a wrong key', 401, openai('invalid_api_key', 'Incorrect API key provided: sk-1'), undefined, 'Auth', 'credential'],
  ['openai', 'a country', 403, openai('unsupported_country_region_territory', 'm', 'request_forbidden'), undefined, 'ModelNotFound', 'model'],
  ['openai', 'a wrong parameter', 400, openai('unsupported_value', 'Unsupported value: temperature'), undefined, 'Invalid', 'request'],
  [
    'azure',
    'a rate limit',
    429,
    openai('429', 'Requests to the ChatCompletions_Create Operation have exceeded call rate limit. Please retry after 7 seconds.'),
    undefined,
    'RateLimit',
    'model',
  ],
  [
    'azure',
    'high demand',
    429,
    openai('429', 'The system is currently experiencing high demand and cannot process your request.'),
    undefined,
    'Overloaded',
    'endpoint',
  ],
  [
    'azure',
    'a filtered prompt',
    400,
    JSON.stringify({
      error: {
        message: 'm',
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} },
      },
    }),
    undefined,
    'ContentFilter',
    'request',
  ],
  [
    'azure',
    'a filtered prompt under a generic code',
    400,
    JSON.stringify({ error: { code: 'BadRequest', message: 'm', innererror: { code: 'ResponsibleAIPolicyViolation' } } }),
    undefined,
    'ContentFilter',
    'request',
  ],
  [
    'azure',
    'an unknown deployment',
    404,
    openai('DeploymentNotFound', 'The API deployment for this resource does not exist.'),
    undefined,
    'ModelNotFound',
    'model',
  ],
  ['azure', 'a wrong key', 401, openai('401', 'Access denied due to invalid subscription key'), undefined, 'Auth', 'credential'],
  ['azure', 'a long prompt', 400, openai('context_length_exceeded', tooLong(8192)), undefined, 'ContextLength', 'request'],
  ['anthropic', 'a rate limit', 429, anthropic('rate_limit_error'), undefined, 'RateLimit', 'model'],
  [
    'anthropic',
    'a spend limit of the organization',
    429,
    anthropic('rate_limit_error', 'm', { details: { error_code: 'enforced_spend_limit_reached' } }),
    undefined,
    'Quota',
    'account',
  ],
  [
    'anthropic',
    'an own spend limit',
    400,
    anthropic('invalid_request_error', 'You have reached your specified API usage limits. You will regain access on 2026-02-01.'),
    undefined,
    'Quota',
    'account',
  ],
  [
    'anthropic',
    'a low balance',
    400,
    anthropic('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
    undefined,
    'Quota',
    'account',
  ],
  ['anthropic', 'billing', 402, anthropic('billing_error'), undefined, 'Quota', 'account'],
  ['anthropic', 'overload', 529, anthropic('overloaded_error', 'Overloaded'), undefined, 'Overloaded', 'endpoint'],
  ['anthropic', 'an error of the server', 500, anthropic('api_error'), undefined, 'ServerError', 'endpoint'],
  ['anthropic', 'a timeout', 504, anthropic('timeout_error'), undefined, 'Timeout', 'endpoint'],
  [
    'anthropic',
    'a long prompt',
    400,
    anthropic('invalid_request_error', 'prompt is too long: 200251 tokens > 200000 maximum'),
    undefined,
    'ContextLength',
    'request',
  ],
  [
    'anthropic',
    'a long prompt with its answer',
    400,
    anthropic('invalid_request_error', 'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000'),
    undefined,
    'ContextLength',
    'request',
  ],
  ['anthropic', 'a body of too many bytes', 413, anthropic('request_too_large'), undefined, 'Invalid', 'request'],
  [
    'anthropic',
    'a filtered output',
    400,
    anthropic('invalid_request_error', 'Output blocked by content filtering policy'),
    undefined,
    'ContentFilter',
    'request',
  ],
  [
    'vertexClaude',
    'a filtered output',
    400,
    anthropic('invalid_request_error', 'Output blocked by content filtering policy'),
    undefined,
    'ContentFilter',
    'request',
  ],
  ['anthropic', 'an unknown model', 404, anthropic('not_found_error', 'model: claude-0'), undefined, 'ModelNotFound', 'model'],
  ['anthropic', 'a wrong key', 401, anthropic('authentication_error', 'invalid x-api-key'), undefined, 'Auth', 'credential'],
  ['anthropic', 'no permission', 403, anthropic('permission_error'), undefined, 'Auth', 'model'],
  ['anthropic', 'a wrong parameter', 400, anthropic('invalid_request_error', 'max_tokens: Field required'), undefined, 'Invalid', 'request'],
  [
    'converse',
    'throttling',
    429,
    bedrock('Too many requests, please wait before trying again.'),
    'ThrottlingException:http://internal.amazon.com/coral/',
    'RateLimit',
    'model',
  ],
  ['converse', 'a service quota', 400, bedrock('m'), 'ServiceQuotaExceededException', 'RateLimit', 'model'],
  ['converse', 'a model that starts', 429, bedrock('The model is not ready'), 'ModelNotReadyException', 'Overloaded', 'endpoint'],
  ['converse', 'unavailability', 503, bedrock('m'), 'ServiceUnavailableException', 'Overloaded', 'endpoint'],
  ['converse', 'a timeout of the model', 408, bedrock('Model timed out'), 'ModelTimeoutException', 'Timeout', 'endpoint'],
  ['converse', 'an error of the model', 424, bedrock('m'), 'ModelErrorException', 'ServerError', 'endpoint'],
  ['converse', 'an error of the server', 500, bedrock('m'), 'InternalServerException', 'ServerError', 'endpoint'],
  ['converse', 'a long prompt', 400, bedrock('Input is too long for requested model.'), 'ValidationException', 'ContextLength', 'request'],
  [
    'converse',
    'a long prompt for Titan',
    400,
    bedrock('400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279'),
    'ValidationException',
    'ContextLength',
    'request',
  ],
  [
    'converse',
    'a long text',
    400,
    bedrock('Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input and try again.'),
    'ValidationException',
    'ContextLength',
    'request',
  ],
  ['converse', 'a filtered output', 400, bedrock('Output blocked by content filtering policy'), 'ValidationException', 'ContentFilter', 'request'],
  ['converse', 'an invalid model', 400, bedrock('The provided model identifier is invalid.'), 'ValidationException', 'ModelNotFound', 'model'],
  ['converse', 'an unknown model', 404, bedrock('m'), 'ResourceNotFoundException', 'ModelNotFound', 'model'],
  ['converse', 'a form that is not filled in', 404, bedrock('m'), 'FTUFormNotFilled', 'ModelNotFound', 'model'],
  [
    'converse',
    'no access to a model',
    403,
    bedrock("You don't have access to the model with the specified model ID."),
    'AccessDeniedException',
    'ModelNotFound',
    'model',
  ],
  ['converse', 'a wrong key', 403, bedrock('The security token included in the request is invalid.'), 'UnrecognizedClientException', 'Auth', 'credential'],
  ['converse', 'an expired signature', 400, bedrock('m'), 'RequestExpired', 'Auth', 'credential'],
  [
    'converse',
    'an exception in the body',
    429,
    JSON.stringify({ __type: 'com.amazon.coral.service#ThrottlingException', message: 'm' }),
    undefined,
    'RateLimit',
    'model',
  ],
  ['converse', 'a wrong parameter', 400, bedrock('1 validation error detected'), 'ValidationException', 'Invalid', 'request'],
  [
    'gemini',
    'a rate limit',
    429,
    `[${google(429, 'RESOURCE_EXHAUSTED', 'm', [quota('GenerateRequestsPerMinutePerProjectPerModel')])}]`,
    undefined,
    'RateLimit',
    'model',
  ],
  [
    'gemini',
    'the quota of a day',
    429,
    google(429, 'RESOURCE_EXHAUSTED', 'm', [quota('GenerateRequestsPerDayPerProjectPerModel-FreeTier')]),
    undefined,
    'Quota',
    'model',
  ],
  [
    'gemini',
    'a model that the tier lacks',
    429,
    google(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded for metric: free_tier_requests, limit: 0, model: gemini-3-pro'),
    undefined,
    'Quota',
    'model',
  ],
  ['gemini', 'spent quota', 429, openai('quota_exceeded'), undefined, 'Quota', 'account'],
  ['vertex', 'no credentials', 401, google(401, 'UNAUTHENTICATED'), undefined, 'Auth', 'credential'],
  ['gemini', 'no credit', 402, google(402, 'RESOURCE_EXHAUSTED'), undefined, 'Quota', 'account'],
  ['gemini', 'overload', 503, google(503, 'UNAVAILABLE', 'The model is overloaded.'), undefined, 'Overloaded', 'endpoint'],
  ['gemini', 'a deadline', 504, google(504, 'DEADLINE_EXCEEDED'), undefined, 'Timeout', 'endpoint'],
  ['gemini', 'an error of the server', 500, google(500, 'INTERNAL'), undefined, 'ServerError', 'endpoint'],
  [
    'gemini',
    'a long prompt',
    400,
    google(400, 'INVALID_ARGUMENT', 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'),
    undefined,
    'ContextLength',
    'request',
  ],
  ['gemini', 'a wrong key', 400, google(400, 'INVALID_ARGUMENT', 'API key not valid.', [reason('API_KEY_INVALID')]), undefined, 'Auth', 'credential'],
  ['gemini', 'a region', 400, google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'), undefined, 'ModelNotFound', 'model'],
  ['gemini', 'an unknown model', 404, google(404, 'NOT_FOUND'), undefined, 'ModelNotFound', 'model'],
  ['gemini', 'no permission', 403, google(403, 'PERMISSION_DENIED'), undefined, 'Auth', 'model'],
  ['gemini', 'a wrong parameter', 400, google(400, 'INVALID_ARGUMENT', 'Invalid value'), undefined, 'Invalid', 'request'],
  ['vertex', 'a shared pool', 429, google(429, 'RESOURCE_EXHAUSTED', 'Resource exhausted. Please try again later.'), undefined, 'RateLimit', 'model'],
  ['vertex', 'a call that was cancelled', 499, google(499, 'CANCELLED'), undefined, 'ServerError', 'endpoint'],
  ['vertexClaude', 'a shared pool', 429, google(429, 'RESOURCE_EXHAUSTED'), undefined, 'RateLimit', 'model'],
  [
    'compatible',
    'capacity of Mistral',
    429,
    JSON.stringify({
      object: 'error',
      message: 'Service tier capacity exceeded for this model.',
      type: 'service_tier_capacity_exceeded',
      param: null,
      code: '3505',
    }),
    undefined,
    'Overloaded',
    'endpoint',
  ],
  ['compatible', 'no credit at Mistral', 402, JSON.stringify({ detail: 'Payment required' }), undefined, 'Quota', 'account'],
  [
    'compatible',
    'a long prompt for Mistral',
    400,
    JSON.stringify({
      object: 'error',
      message: 'Prompt contains 40960 tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_error',
      code: '3051',
    }),
    undefined,
    'ContextLength',
    'request',
  ],
  ['compatible', 'flex capacity of Groq', 498, openai('capacity_exceeded', 'm', 'capacity_exceeded'), undefined, 'Overloaded', 'endpoint'],
  [
    'compatible',
    'a request over the limit of Groq',
    413,
    openai('rate_limit_exceeded', 'Request too large for model `llama` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 7199', 'tokens'),
    undefined,
    'ContextLength',
    'request',
  ],
  ['compatible', 'a failed tool call at Groq', 400, openai('tool_use_failed', 'Failed to call a function.'), undefined, 'Invalid', 'request'],
  ['compatible', 'no balance at DeepSeek', 402, openai('invalid_request_error', 'Insufficient Balance', 'unknown_error'), undefined, 'Quota', 'account'],
  ['compatible', 'an unknown model at DeepSeek', 400, openai('invalid_request_error', 'Model Not Exist'), undefined, 'ModelNotFound', 'model'],
  [
    'compatible',
    'a wrong key at xAI',
    400,
    JSON.stringify({
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: xa***. You can obtain an API key from https://console.x.ai.',
    }),
    undefined,
    'Auth',
    'credential',
  ],
  [
    'compatible',
    'a long prompt for xAI',
    400,
    JSON.stringify({
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    }),
    undefined,
    'ContextLength',
    'request',
  ],
  ['compatible', 'no credit at OpenRouter', 402, openai(402, 'Insufficient credits', 'x'), undefined, 'Quota', 'account'],
  [
    'compatible',
    'credit in flight at OpenRouter',
    402,
    JSON.stringify({ error: { code: 402, message: 'm', metadata: { limit_source: 'openrouter_in_flight_budget' } } }),
    undefined,
    'RateLimit',
    'request',
  ],
  [
    'compatible',
    'moderation of OpenRouter',
    403,
    JSON.stringify({ error: { code: 403, message: 'm', metadata: { reasons: ['violence'], flagged_input: 'x', provider_name: 'p' } } }),
    undefined,
    'ContentFilter',
    'request',
  ],
  [
    'compatible',
    'an error that OpenRouter passes on',
    400,
    JSON.stringify({ error: { code: 400, message: 'Provider returned error', metadata: { raw: openai('context_length_exceeded', 'too long') } } }),
    undefined,
    'ContextLength',
    'request',
  ],
  ['compatible', 'no provider at OpenRouter', 503, openai(503), undefined, 'Overloaded', 'endpoint'],
  ['compatible', 'a timeout at OpenRouter', 524, '<html>', undefined, 'Timeout', 'endpoint'],
  ['compatible', 'a long prompt for vLLM', 400, openai(400, tooLong(4096), 'BadRequestError'), undefined, 'ContextLength', 'request'],
  ['compatible', 'an unknown model at vLLM', 404, openai(404, 'The model `x` does not exist.', 'NotFoundError'), undefined, 'ModelNotFound', 'model'],
  [
    'compatible',
    'a long prompt for llama.cpp',
    400,
    JSON.stringify({
      error: {
        code: 400,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 9,
        n_ctx: 8,
      },
    }),
    undefined,
    'ContextLength',
    'request',
  ],
  ['compatible', 'a model that llama.cpp loads', 503, openai(503, 'Loading model', 'unavailable_error'), undefined, 'Overloaded', 'endpoint'],
  [
    'compatible',
    'a full queue of Ollama',
    503,
    JSON.stringify({ error: 'server busy, please try again. maximum pending requests exceeded' }),
    undefined,
    'Overloaded',
    'endpoint',
  ],
  [
    'compatible',
    'no tools at Ollama',
    400,
    JSON.stringify({ error: { message: 'registry.ollama.ai/library/gemma does not support tools', type: 'api_error' } }),
    undefined,
    'Invalid',
    'request',
  ],
  [
    'compatible',
    'a spend limit of Anthropic behind a gateway',
    429,
    anthropic('rate_limit_error', 'm', { details: { error_code: 'enforced_spend_limit_reached' } }),
    undefined,
    'Quota',
    'account',
  ],
  ['compatible', 'HTML of a proxy', 502, '<html><body>Bad Gateway</body></html>', undefined, 'ServerError', 'endpoint'],
  ['compatible', 'HTML of a firewall', 403, '<html>blocked</html>', undefined, 'Auth', 'request'],
  ['compatible', 'no body', 429, '', undefined, 'RateLimit', 'model'],
]

describe('the cause of a failure is told by status, code and body', () => {
  test.each(cells)('%s: %s (%i)', (target, _, status, body, exception, cause, scope) => {
    const headers = HeaderList.from(exception === undefined ? [] : [['x-amzn-errortype', exception]])
    expect(causeOf(target, status, headers, Buffer.from(body), NOW)).toEqual({ cause, scope, retryAfterMs: undefined, shouldRetry: undefined })
  })

  test('each signal of the table is the one that a cell matches', () => {
    const all = [...Object.values(signals).flat(), ...generic]
    const used = new Set<unknown>()
    const watched = all.map((signal) => ({ signal, codes: new Set(signal.codes) }))
    for (const [, , status, body, exception] of cells)
      for (const { signal, codes } of watched) {
        const text = `${body.replace('PerDay', 'quota_per_day')} ${exception ?? ''}`.toLowerCase()
        const isCode = codes.size === 0 || [...codes].some((code) => text.includes(code))
        const message = (/"(?:message|error)":"((?:[^"\\]|\\.)*)"/.exec(body)?.[1] ?? '').replaceAll('\\"', '"')
        if ((signal.status?.includes(status) ?? true) && isCode && (signal.says?.test(message) ?? true)) used.add(signal)
      }
    // DeepSeek reports this one as the finish reason of a response.
    expect(all.filter((signal) => !used.has(signal)).flatMap(({ codes, says }) => codes?.join() ?? String(says))).toEqual(['insufficient_system_resource'])
  })

  test.each<[Target, string, { type: string; message: string; received?: unknown }, Cause]>([
    [
      'anthropic',
      'overload in an event',
      { type: 'overloaded_error', message: 'Overloaded', received: JSON.parse(anthropic('overloaded_error')) },
      'Overloaded',
    ],
    [
      'responses',
      'a quota error after response.created',
      {
        type: 'insufficient_quota',
        message: 'm',
        received: { type: 'response.failed', response: { status: 'failed', error: { code: 'insufficient_quota', message: 'm' } } },
      },
      'Quota',
    ],
    [
      'openai',
      'an error event with a code',
      { type: 'x', message: 'm', received: { error: { code: 'context_length_exceeded', message: 'm' } } },
      'ContextLength',
    ],
    ['compatible', 'a status in an event of OpenRouter', { type: 'x', message: 'm', received: { error: { code: 429, message: 'm' } } }, 'RateLimit'],
    [
      'gemini',
      'a status of Google in a list',
      { type: 'api_error', message: 'm', received: [{ error: { code: 503, status: 'UNAVAILABLE', message: 'm' } }] },
      'Overloaded',
    ],
    ['converse', 'throttling in a frame', { type: 'throttlingException', message: 'm' }, 'RateLimit'],
    ['converse', 'an error of the model in a frame', { type: 'modelStreamErrorException', message: 'm' }, 'ServerError'],
    ['converse', 'unavailability in a frame', { type: 'serviceUnavailableException', message: 'm' }, 'Overloaded'],
    ['converse', 'a timeout in a frame', { type: 'modelTimeoutException', message: 'm' }, 'Timeout'],
    ['converse', 'a long prompt in a frame', { type: 'validationException', message: 'Input is too long for requested model.' }, 'ContextLength'],
    ['compatible', 'a finish reason of DeepSeek', { type: 'insufficient_system_resource', message: 'm' }, 'Overloaded'],
    ['openai', 'an error without a code', { type: 'api_error', message: 'm' }, 'ServerError'],
    ['anthropic', 'an invalid request in an event', { type: 'invalid_request_error', message: 'm' }, 'Invalid'],
  ])('%s: %s', (target, _, error, cause) => expect(causeOf(target, 200, HeaderList.from([]), error, NOW).cause).toBe(cause))
})

describe('a client', () => {
  test('cannot evict a provider with the members of its request that a failed response repeats', () => {
    const response = {
      status: 'failed',
      metadata: { code: 'insufficient_quota' },
      instructions: 'insufficient_quota',
      error: { code: 'server_error', message: 'm' },
    }
    const received = { type: 'response.failed', response }
    expect(causeOf('responses', 200, HeaderList.from([]), { type: 'server_error', message: 'm', received }, NOW).cause).toBe('ServerError')
  })

  test('cannot evict a provider with the text of its request in the message of an error', () => {
    const targets: readonly Target[] = ['openai', 'azure', 'compatible', 'responses', 'anthropic', 'vertexClaude', 'gemini', 'vertex', 'converse']
    const quoted = fc.oneof(fc.string(), ...['insufficient_quota', 'Your credit balance is too low', 'Incorrect API key provided', 'limit: 0'].map(fc.constant))
    fc.assert(
      fc.property(fc.constantFrom(...targets), quoted, fc.constantFrom(400, 413, 422), (target, text, status) => {
        const { scope } = causeOf(target, status, HeaderList.from([]), Buffer.from(openai('invalid_value', `Invalid value: '${text}'`)), NOW)
        expect(scope).toBe('request')
      }),
    )
  })

  test('gets a verdict for any body', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), fc.integer({ min: 100, max: 999 }), (body, status) => {
        expect(typeof causeOf('compatible', status, HeaderList.from([]), Buffer.from(body), NOW).cause).toBe('string')
      }),
    )
  })
})
