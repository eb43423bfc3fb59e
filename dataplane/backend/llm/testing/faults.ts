import type { LLMProvider } from '#gen/config/types.ts'
import type { Answer, MockRequest } from '../../../../e2e/harness/llm/server.ts'
import { frame } from '../convert/testdata/streams.ts'

/** Failures of each provider, in the shapes that their references document. Used by tests only. */

type Config = Omit<LLMProvider, 'host' | 'port'>
type Json = Readonly<Record<string, unknown>>

/** The providers whose failures differ, with a model that selects their API. */
export const failing: Readonly<Record<string, { readonly config: Config; readonly model: string }>> = {
  openai: { config: { providerA: {} }, model: 'gpt-5' },
  azure: { config: { providerB: { endpoint: 'x.openai.azure.com' } }, model: 'gpt-5' },
  anthropic: { config: { providerC: {} }, model: 'claude-opus-4-1' },
  gemini: { config: { providerD: {} }, model: 'gemini-3-pro' },
  vertex: { config: { providerE: { projectId: 'p', region: 'global' } }, model: 'gemini-3-pro' },
  vertexClaude: { config: { providerE: { projectId: 'p', region: 'global' } }, model: 'claude-opus-4-1' },
  bedrock: { config: { providerF: {} }, model: 'anthropic.claude-opus-4-1' },
}
export type Failing = 'openai' | 'azure' | 'anthropic' | 'gemini' | 'vertex' | 'vertexClaude' | 'bedrock'

/** A kind of failure, and its cause: of a buffered response, and of a stream if that is another one. */
export const faults = {
  'a rate limit': 'RateLimit',
  'a rate limit with a delay': 'RateLimit',
  'spent credit': 'Quota',
  overload: 'Overloaded',
  'an error of the server': 'ServerError',
  'a timeout of the provider': 'Timeout',
  'a long prompt': 'ContextLength',
  'a filtered prompt': 'ContentFilter',
  'a filtered response': 'ContentFilter',
  'a wrong key': 'Auth',
  'an unknown model': 'ModelNotFound',
  'HTML with status 502': 'ServerError',
  'HTML with status 200': 'ServerError',
  'overload with status 200': 'Overloaded',
  'half a response': 'ServerError',
  silence: 'Timeout',
} as const
export type Fault = keyof typeof faults

interface Shape {
  readonly status: number
  readonly body: Json
  readonly exception?: string
}
const openai = (status: number, code: string, message = 'm', type = 'invalid_request_error'): Shape => ({
  status,
  body: { error: { message, type, param: null, code } },
})
const anthropic = (status: number, type: string, message = 'm', more: object = {}): Shape => ({
  status,
  body: { type: 'error', error: { type, message, ...more } },
})
const google = (status: number, name: string, message = 'm', details: object[] = []): Shape => ({
  status,
  body: { error: { code: status, status: name, message, details } },
})
const bedrock = (status: number, exception: string, message = 'm'): Shape => ({ status, body: { message }, exception })

type Errors = Readonly<
  Record<
    Exclude<Fault, 'a filtered response' | `HTML${string}` | 'half a response' | 'silence' | 'a rate limit with a delay' | 'overload with status 200'>,
    Shape
  >
>
const ofOpenai: Errors = {
  'a rate limit': openai(429, 'rate_limit_exceeded'),
  'spent credit': openai(429, 'credit_balance_exhausted', 'You exceeded your current quota', 'insufficient_quota'),
  overload: openai(503, 'server_is_overloaded'),
  'an error of the server': openai(500, '', 'The server had an error', 'server_error'),
  'a timeout of the provider': openai(504, ''),
  'a long prompt': openai(400, 'context_length_exceeded', "This model's maximum context length is 128000 tokens."),
  'a filtered prompt': openai(400, 'content_policy_violation'),
  'a wrong key': openai(401, 'invalid_api_key'),
  'an unknown model': openai(404, 'model_not_found'),
}
const ofAnthropic: Errors = {
  'a rate limit': anthropic(429, 'rate_limit_error'),
  'spent credit': anthropic(429, 'rate_limit_error', 'm', { details: { error_code: 'enforced_spend_limit_reached' } }),
  overload: anthropic(529, 'overloaded_error', 'Overloaded'),
  'an error of the server': anthropic(500, 'api_error'),
  'a timeout of the provider': anthropic(504, 'timeout_error'),
  'a long prompt': anthropic(400, 'invalid_request_error', 'prompt is too long: 200251 tokens > 200000 maximum'),
  'a filtered prompt': anthropic(400, 'invalid_request_error', 'Output blocked by content filtering policy'),
  'a wrong key': anthropic(401, 'authentication_error', 'invalid x-api-key'),
  'an unknown model': anthropic(404, 'not_found_error', 'model: x'),
}
const ofGoogle: Errors = {
  'a rate limit': google(429, 'RESOURCE_EXHAUSTED'),
  'spent credit': google(402, 'RESOURCE_EXHAUSTED'),
  overload: google(503, 'UNAVAILABLE', 'The model is overloaded.'),
  'an error of the server': google(500, 'INTERNAL'),
  'a timeout of the provider': google(504, 'DEADLINE_EXCEEDED'),
  'a long prompt': google(400, 'INVALID_ARGUMENT', 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'),
  'a filtered prompt': google(400, 'INVALID_ARGUMENT', 'Output blocked by content filtering policy'),
  'a wrong key': google(400, 'INVALID_ARGUMENT', 'API key not valid.', [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }]),
  'an unknown model': google(404, 'NOT_FOUND'),
}
const errors: Readonly<Record<Failing, Errors>> = {
  openai: ofOpenai,
  azure: {
    ...ofOpenai,
    overload: openai(429, '429', 'The system is currently experiencing high demand and cannot process your request.'),
    'a filtered prompt': { status: 400, body: { error: { code: 'BadRequest', message: 'm', innererror: { code: 'ResponsibleAIPolicyViolation' } } } },
    'an unknown model': openai(404, 'DeploymentNotFound'),
  },
  anthropic: ofAnthropic,
  gemini: ofGoogle,
  vertex: ofGoogle,
  vertexClaude: {
    ...ofAnthropic,
    'a rate limit': google(429, 'RESOURCE_EXHAUSTED', 'Resource exhausted. Please try again later.'),
    'spent credit': google(402, 'RESOURCE_EXHAUSTED'),
  },
  bedrock: {
    'a rate limit': bedrock(429, 'ThrottlingException'),
    'spent credit': { status: 402, body: { message: 'm' } },
    overload: bedrock(503, 'ServiceUnavailableException'),
    'an error of the server': bedrock(500, 'InternalServerException'),
    'a timeout of the provider': bedrock(408, 'ModelTimeoutException'),
    'a long prompt': bedrock(400, 'ValidationException', 'Input is too long for requested model.'),
    'a filtered prompt': bedrock(400, 'ValidationException', 'Output blocked by content filtering policy'),
    'a wrong key': bedrock(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.'),
    'an unknown model': bedrock(400, 'ValidationException', 'The provided model identifier is invalid.'),
  },
}

const sse = (data: object, name?: string): Buffer => Buffer.from(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`)

/** How a format streams and filters. */
interface Wire {
  readonly contentType: string
  /** Frames before the content. */
  readonly start: Buffer
  readonly overload: Buffer
  readonly filtered: { readonly body: Json; readonly rest: Buffer }
}
const completion = (choice: object, object: string): Json => ({ id: 'c', object, model: 'm', choices: [{ index: 0, ...choice }] })
const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: { input_tokens: 3, output_tokens: 1 } }
const response = { id: 'r', object: 'response', model: 'm', output: [], status: 'in_progress' }
const incomplete = {
  ...response,
  status: 'incomplete',
  incomplete_details: { reason: 'content_filter' },
  usage: { input_tokens: 3, output_tokens: 0, total_tokens: 3 },
}
const wires: Readonly<Record<'completions' | 'messages' | 'responses' | 'converse', Wire>> = {
  completions: {
    contentType: 'text/event-stream',
    start: Buffer.concat([
      Buffer.from(': keep-alive\n\n'),
      sse(completion({ delta: { role: 'assistant', content: '' }, finish_reason: null }, 'chat.completion.chunk')),
    ]),
    overload: sse({ error: { message: 'm', type: 'server_error', code: 'server_is_overloaded' } }),
    filtered: {
      body: {
        ...completion({ message: { role: 'assistant', content: '' }, finish_reason: 'content_filter' }, 'chat.completion'),
        usage: { prompt_tokens: 3, completion_tokens: 0 },
      },
      rest: Buffer.concat([sse(completion({ delta: {}, finish_reason: 'content_filter' }, 'chat.completion.chunk')), Buffer.from('data: [DONE]\n\n')]),
    },
  },
  messages: {
    contentType: 'text/event-stream',
    start: Buffer.concat([sse({ type: 'message_start', message }, 'message_start'), sse({ type: 'ping' }, 'ping')]),
    overload: sse(ofAnthropic.overload.body, 'error'),
    filtered: {
      body: { ...message, stop_reason: 'refusal' },
      rest: Buffer.concat([
        sse({ type: 'message_delta', delta: { stop_reason: 'refusal' }, usage: { output_tokens: 1 } }, 'message_delta'),
        sse({ type: 'message_stop' }, 'message_stop'),
      ]),
    },
  },
  responses: {
    contentType: 'text/event-stream',
    start: Buffer.concat([
      sse({ type: 'response.created', response }, 'response.created'),
      sse({ type: 'response.in_progress', response }, 'response.in_progress'),
    ]),
    overload: sse(
      { type: 'response.failed', response: { ...response, status: 'failed', error: { code: 'server_is_overloaded', message: 'm' } } },
      'response.failed',
    ),
    filtered: { body: incomplete, rest: sse({ type: 'response.incomplete', response: incomplete }, 'response.incomplete') },
  },
  converse: {
    contentType: 'application/vnd.amazon.eventstream',
    start: frame('messageStart', { role: 'assistant' }),
    overload: frame('serviceUnavailableException', { message: 'm' }, 'exception'),
    filtered: {
      body: {
        output: { message: { role: 'assistant', content: [] } },
        stopReason: 'content_filtered',
        usage: { inputTokens: 3, outputTokens: 0, totalTokens: 3 },
        metrics: {},
      },
      rest: Buffer.concat([
        frame('messageStop', { stopReason: 'content_filtered' }),
        frame('metadata', { usage: { inputTokens: 3, outputTokens: 0, totalTokens: 3 }, metrics: {} }),
      ]),
    },
  },
}

function wireOf({ path }: MockRequest): Wire {
  if (path.includes('/converse')) return wires.converse
  if (path.includes('/responses')) return wires.responses
  return path.includes('/messages') || path.includes('awPredict') ? wires.messages : wires.completions
}
const isStreamed = ({ path, body }: MockRequest): boolean => body?.['stream'] === true || /converse-stream|streamRawPredict/.test(path)

/** Answers as a provider that fails. */
export function answerWith(provider: Failing, fault: Fault): Answer {
  return (request, out) => {
    const wire = wireOf(request)
    const isStream = isStreamed(request)
    const json = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): void =>
      void out.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    const events = (...parts: Buffer[]): void => void out.writeHead(200, { 'content-type': wire.contentType }).end(Buffer.concat(parts))
    switch (fault) {
      case 'a filtered response':
        return isStream ? events(wire.start, wire.filtered.rest) : json(200, wire.filtered.body)
      case 'overload with status 200': {
        if (isStream) return events(wire.start, wire.overload)
        // Bedrock names the exception in a header only.
        return json(200, provider === 'bedrock' || provider === 'azure' ? ofOpenai.overload.body : errors[provider].overload.body)
      }
      case 'HTML with status 502':
      case 'HTML with status 200':
        return void out.writeHead(fault.endsWith('502') ? 502 : 200, { 'content-type': 'text/html' }).end('<html><body>Bad Gateway</body></html>')
      case 'half a response':
        out.writeHead(200, { 'content-type': isStream ? wire.contentType : 'application/json', ...(!isStream && { 'content-length': '999' }) })
        out.write(isStream ? wire.start : '{"id":"c","choices":[')
        return void setTimeout(() => out.socket?.destroy(), 10)
      case 'silence':
        return
      default: {
        const { status, body, exception } = errors[provider][fault === 'a rate limit with a delay' ? 'a rate limit' : fault]
        const delay = fault === 'a rate limit with a delay' && { 'retry-after': '3600' }
        return json(status, body, { ...delay, ...(exception !== undefined && { 'x-amzn-errortype': exception }) })
      }
    }
  }
}
