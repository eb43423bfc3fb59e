import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { HeaderList } from '../../../http/headers.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Target } from '../common/types.ts'
import { anthropic, cells, openai } from './cells-testing.ts'
import { causeOfError } from './failure.ts'
import { causeOf } from './index.ts'
import { generic, signals } from './table.ts'
import type { Cause } from './types.ts'

const NOW = Date.UTC(2026, 0, 1)
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

  test('cannot evict a provider by holding the connections that the gateway may have', () => {
    expect(causeOfError('openai', new ProxyError('CONNECTION_LIMIT'), 0)).toEqual({ cause: 'Unreachable', scope: 'request' })
  })

  test('gets a verdict for any body', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), fc.integer({ min: 100, max: 999 }), (body, status) => {
        expect(typeof causeOf('compatible', status, HeaderList.from([]), Buffer.from(body), NOW).cause).toBe('string')
      }),
    )
  })
})
