import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { afterEach, describe, expect, jest, test } from '@jest/globals'
import type { ServerDuplexStream } from '@grpc/grpc-js'
import type { ExtProc, ExtProcProcessing } from '#gen/config/types.ts'
import { HeaderValueOption_HeaderAppendAction as Action } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import { ProcessingMode_BodySendMode as Wire } from '#gen/proto/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.js'
import { ExternalProcessor, ProcessingResponseSchema, type ProcessingRequest } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { bidi, destinationTo, startGrpcService } from '../../net/callout/testing.ts'
import { compose } from '../../request/exchange/compose.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { BufferBody, readBody, type Body, type BodySink } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { LongBody } from '../../testing/body.ts'
import { testExchange, type testRequest } from '../../testing/exchange.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState } from '../state.ts'
import { until } from '../../../e2e/harness/wait.ts'
import { variables } from '../../request/exchange/variables.ts'

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close()
})

type Reply = MessageInitShape<typeof ProcessingResponseSchema>
type Processor = (request: ProcessingRequest) => Reply | readonly Reply[] | undefined | Error

const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString()
const setHeader = (key: string, value: string) => ({
  header: { key, rawValue: Buffer.from(value) },
  appendAction: Action.OVERWRITE_IF_EXISTS_OR_ADD,
})
const bodyOf = (request: ProcessingRequest | undefined) => (request?.request.case === 'requestBody' ? request.request.value : undefined)

/** Accepts every message unchanged. Streamed bodies are sent back. */
const agree = ({ request }: ProcessingRequest, isStreamed = true): Reply => {
  switch (request.case) {
    case 'requestBody':
    case 'responseBody': {
      const { body, endOfStream } = request.value
      const response = isStreamed ? { bodyMutation: { mutation: { case: 'streamedResponse' as const, value: { body, endOfStream } } } } : {}
      return { response: { case: request.case, value: { response } } }
    }
    default:
      return { response: { case: request.case, value: {} } } as Reply
  }
}

interface Options {
  readonly policy?: Partial<ExtProc>
  readonly modes?: ExtProcProcessing
  readonly request?: Partial<Parameters<typeof testRequest>[0]>
  readonly response?: { readonly body?: Body; readonly headers?: Record<string, string>; readonly status?: number }
  readonly prepare?: (exchange: Exchange) => void
  readonly upstream?: (exchange: Exchange) => Promise<void> | void
  readonly port?: number
  readonly maxBufferBytes?: number
}

/** Sends a request. Returns the messages to the processor, the number of its calls, the forwarded request and the response. */
async function send(processor: Processor, options: Options = {}) {
  const seen: ProcessingRequest[] = []
  let ends = 0
  const service = await startGrpcService([
    bidi(ExternalProcessor.method.process, ((call: ServerDuplexStream<ProcessingRequest, unknown>) => {
      call.on('data', (request: ProcessingRequest) => {
        seen.push(request)
        const replies = processor(request)
        if (replies instanceof Error) return void call.emit('error', replies)
        for (const reply of [replies].flat()) if (reply !== undefined) call.write(create(ProcessingResponseSchema, reply))
      })
      call.on('end', () => (ends++, call.end()))
      call.on('error', () => undefined)
    }) as never),
  ])
  const destination = destinationTo(options.port ?? service.port)
  open.push(
    () => service.close(),
    () => destination.close(),
  )
  const pick = jest.spyOn(destination, 'pick')
  const exchange = testExchange(options.request)
  options.prepare?.(exchange)
  let forwarded: string | undefined
  let requestTrailers: HeaderList | undefined
  const upstream = async (): Promise<void> => {
    await options.upstream?.(exchange)
    const { bytes, trailers } = await readBody(exchange.request.body, Infinity).catch((error: unknown) => {
      throw new ProxyError('UPSTREAM_FAILED', { cause: error })
    })
    forwarded = bytes.toString()
    requestTrailers = trailers
    const { body = new BufferBody('answer'), headers = { 'content-length': '6' }, status = 200 } = options.response ?? {}
    exchange.response = { status, headers: HeaderList.from(Object.entries(headers)), body, upgraded: undefined }
  }
  const extProc: ExtProc = { backendRef: { address: 'a:1' }, ...(options.modes === undefined ? {} : { processingOptions: options.modes }), ...options.policy }
  const state = createPolicyState({ destinations: { forPolicy: () => destination } })
  await compose(compilePolicies({ traffic: { extProc }, state, maxBufferBytes: options.maxBufferBytes }), upstream)(exchange)
  const { response } = exchange
  const read = await readBody(response?.body, Infinity).then(
    ({ bytes, trailers }) => ({ text: bytes.toString(), trailers }),
    (error: Error) => ({ text: `broken: ${error.message}`, trailers: undefined }),
  )
  return {
    exchange,
    seen,
    forwarded,
    requestTrailers,
    answer: `${response?.status} ${read.text}`,
    trailers: read.trailers,
    response,
    calls: pick.mock.calls.length,
    ends: () => ends,
  }
}

const post = (text: string): Options['request'] => ({
  method: 'POST',
  headers: new HeaderList(['content-length', String(text.length)]),
  body: new BufferBody(text),
})
const kinds = (seen: readonly ProcessingRequest[]) => seen.map(({ request }) => request.case)
/** Changes one kind of message and accepts the others. */
const onlyWhen =
  (kind: ProcessingRequest['request']['case'], reply: Reply | Error, isStreamed = false): Processor =>
  (request) =>
    request.request.case === kind ? reply : agree(request, isStreamed)

/** A body of unknown length in pieces, with trailers. */
class Pieces implements Body {
  readonly length = undefined
  readonly #pieces: readonly string[]
  readonly #trailers: HeaderList | undefined
  constructor(pieces: readonly string[], trailers?: HeaderList) {
    this.#pieces = pieces
    this.#trailers = trailers
  }
  start(sink: BodySink): void {
    setTimeout(() => {
      for (const piece of this.#pieces) sink.onData(Buffer.from(piece))
      sink.onEnd(this.#trailers)
    }, 5)
  }
  pause(): void {}
  resume(): void {}
  cancel(): void {}
}

describe('the processor receives', () => {
  test('all parts by default, on one stream that ends with the exchange', async () => {
    const { seen, forwarded, answer, ends } = await send(agree, { request: { ...post('hello'), target: '/p?q' } })
    expect(kinds(seen)).toEqual(['requestHeaders', 'requestBody', 'requestBody', 'responseHeaders', 'responseBody', 'responseBody'])
    expect([forwarded, answer]).toEqual(['hello', '200 answer'])
    expect(seen.map(({ protocolConfig }) => protocolConfig?.requestBodyMode)).toEqual([4, ...Array.from({ length: 5 }, () => undefined)])
    await until(() => ends() === 1)
  })

  test('header values as bytes and pseudo headers as text', async () => {
    const headers = new HeaderList(['x-a', Buffer.from('zwölf').toString('latin1')])
    const { seen } = await send(agree, { request: { headers, target: '/p?q' } })
    const value = seen[0]?.request.value as { headers: { headers: { key: string; value: string; rawValue: Uint8Array }[] }; endOfStream: boolean }
    expect(value.endOfStream).toBe(true)
    expect(value.headers.headers.map((header) => [header.key, header.value, textOf(header.rawValue)])).toEqual([
      [':method', 'GET', ''],
      [':scheme', 'http', ''],
      [':authority', 'example.com', ''],
      [':path', '/p?q', ''],
      ['x-a', '', 'zwölf'],
    ])
  })

  test.each<[string, ExtProcProcessing, string[]]>([
    ['no bodies', { requestBodyMode: 'None', responseBodyMode: 'None' }, ['requestHeaders', 'responseHeaders']],
    ['buffered bodies', { requestBodyMode: 'Buffered', responseBodyMode: 'Buffered' }, ['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody']],
    [
      'only the request body',
      { requestHeaderMode: 'Skip', requestBodyMode: 'Buffered', responseHeaderMode: 'Skip', responseBodyMode: 'None', responseTrailerMode: 'Skip' },
      ['requestBody'],
    ],
    ['only the response', { requestHeaderMode: 'Skip', requestBodyMode: 'None', requestTrailerMode: 'Skip', responseBodyMode: 'None' }, ['responseHeaders']],
  ])('the configured parts: %s', async (_, modes, expected) => {
    const { seen, forwarded, answer, ends } = await send((request) => agree(request, false), { modes, request: post('hello') })
    expect([kinds(seen), forwarded, answer]).toEqual([expected, 'hello', '200 answer'])
    await until(() => ends() === 1)
  })

  test.each<[string, ExtProcProcessing]>([
    ['streamed bodies', {}],
    ['buffered bodies', { requestBodyMode: 'Buffered', responseBodyMode: 'Buffered' }],
    ['bodies that are not sent', { requestBodyMode: 'None', responseBodyMode: 'None' }],
  ])('trailers of %s and may change them', async (_, modes) => {
    const trailers = new HeaderList(['x-end', '1', 'x-gone', '1'])
    const mutation = { headerMutation: { setHeaders: [setHeader('x-new', '2')], removeHeaders: ['x-gone'] } }
    const isStreamed = Object.keys(modes).length === 0
    const processor: Processor = (request) =>
      request.request.case === 'requestTrailers' || request.request.case === 'responseTrailers'
        ? { response: { case: request.request.case, value: mutation } }
        : agree(request, isStreamed)
    const result = await send(processor, {
      modes,
      request: { method: 'POST', body: new Pieces(['a', 'b'], trailers) },
      response: { body: new Pieces(['c'], trailers), headers: {} },
    })
    expect([result.forwarded, result.requestTrailers?.raw, result.answer, result.trailers?.raw]).toEqual([
      'ab',
      ['x-end', '1', 'x-new', '2'],
      '200 c',
      ['x-end', '1', 'x-new', '2'],
    ])
    await until(() => result.ends() === 1)
  })

  const skipped: ExtProcProcessing = {
    requestHeaderMode: 'Skip',
    requestBodyMode: 'None',
    requestTrailerMode: 'Skip',
    responseHeaderMode: 'Skip',
    responseBodyMode: 'None',
    responseTrailerMode: 'Skip',
  }
  test.each<[string, ExtProcProcessing, Options['upstream'], string]>([
    ['all parts are skipped', skipped, undefined, '200 answer'],
    ['neither message has a body or trailers', { requestHeaderMode: 'Skip', responseHeaderMode: 'Skip', responseBodyMode: 'None' }, undefined, '200 answer'],
    [
      'only the response is sent, and the gateway makes it',
      { ...skipped, responseHeaderMode: 'Send' },
      () => Promise.reject(new ProxyError('NO_HEALTHY_BACKENDS')),
      '503 no healthy backends',
    ],
  ])('no call if %s', async (_, modes, upstream, expected) => {
    const { calls, answer } = await send(agree, { modes, ...(upstream === undefined ? {} : { upstream }) })
    expect([calls, answer]).toEqual([0, expected])
  })

  test('one call for all parts', async () => {
    expect((await send(agree, { request: post('hello') })).calls).toBe(1)
  })

  test('no response that the gateway made', async () => {
    const fail = (): void => {
      throw new ProxyError('NO_HEALTHY_BACKENDS')
    }
    const { seen, answer, ends } = await send(agree, { upstream: fail })
    expect([kinds(seen), answer]).toEqual([['requestHeaders'], '503 no healthy backends'])
    await until(() => ends() === 1)
  })
})

describe('the processor changes', () => {
  test('headers of the request and removes headers first', async () => {
    const mutation = {
      removeHeaders: ['x-gone', 'x-both'],
      setHeaders: [setHeader('x-both', 'new'), setHeader(':path', '/other'), setHeader('host', 'other.example')],
    }
    const reply: Reply = { response: { case: 'requestHeaders', value: { response: { headerMutation: mutation } } }, dynamicMetadata: { a: 1 } }
    const { exchange } = await send(onlyWhen('requestHeaders', reply), {
      request: { headers: new HeaderList(['x-gone', '1', 'x-both', '1']) },
      modes: { responseBodyMode: 'None' },
    })
    expect([[...exchange.request.headers], exchange.request.target, exchange.request.authority]).toEqual([[['x-both', 'new']], '/other', 'other.example'])
    expect({ ...(variables.extproc.get(exchange) as object) }).toEqual({ a: 1 })
  })

  test('headers and status of the response', async () => {
    const reply: Reply = {
      response: { case: 'responseHeaders', value: { response: { headerMutation: { setHeaders: [setHeader('x-a', '1'), setHeader(':status', '202')] } } } },
    }
    const { answer, response } = await send(onlyWhen('responseHeaders', reply), { modes: { responseBodyMode: 'None' } })
    expect([answer, response?.headers.get('x-a'), response?.headers.get('content-length')]).toEqual(['202 answer', '1', '6'])
  })

  test.each<[string, object, string]>([
    ['replaced', { case: 'body', value: Buffer.from('other') }, 'other'],
    ['cleared', { case: 'clearBody', value: true }, ''],
    ['unchanged', { case: undefined }, 'hello'],
  ])('a buffered request body, which is then %s', async (_, mutation, expected) => {
    const reply = { response: { case: 'requestBody', value: { response: { bodyMutation: { mutation } } } } } as Reply
    const { forwarded, exchange } = await send(onlyWhen('requestBody', reply), {
      modes: { requestBodyMode: 'Buffered', responseBodyMode: 'None' },
      request: post('hello'),
    })
    expect([forwarded, exchange.request.headers.get('content-length')]).toEqual([expected, expected === 'hello' ? '5' : undefined])
  })

  test('a buffered response body and its length', async () => {
    const reply = {
      response: { case: 'responseBody', value: { response: { bodyMutation: { mutation: { case: 'body', value: Buffer.from('longer than before') } } } } },
    } as Reply
    const { answer, response } = await send(onlyWhen('responseBody', reply), { modes: { responseBodyMode: 'Buffered' } })
    expect([answer, response?.headers.has('content-length')]).toEqual(['200 longer than before', false])
  })

  test('the beginning of a long body, and the rest follows', async () => {
    const reply = {
      response: { case: 'requestBody', value: { response: { bodyMutation: { mutation: { case: 'body', value: Buffer.from('NEW') } } } } },
    } as Reply
    const modes = { requestBodyMode: 'BufferedPartial', responseBodyMode: 'None' } as const
    const { forwarded, seen } = await send(onlyWhen('requestBody', reply), {
      modes,
      maxBufferBytes: 4,
      request: { method: 'POST', body: new Pieces(['abc', 'def', 'ghi']) },
    })
    expect([forwarded, textOf(bodyOf(seen[1])?.body), bodyOf(seen[1])?.endOfStream]).toEqual(['NEWefghi', 'abcd', false])
  })

  test('streamed bodies into more or fewer chunks', async () => {
    const processor: Processor = (request) => {
      const { case: kind, value } = request.request
      if (kind !== 'requestBody') return agree(request)
      const part = (body: string, endOfStream: boolean): Reply => ({
        response: {
          case: kind,
          value: { response: { bodyMutation: { mutation: { case: 'streamedResponse', value: { body: Buffer.from(body), endOfStream } } } } },
        },
      })
      return value.endOfStream ? [part('!', false), part('?', true)] : [part(`<${textOf(value.body)}`, false), part('>', false)]
    }
    const { forwarded, exchange } = await send(processor, {
      request: { method: 'POST', headers: new HeaderList(['content-length', '2']), body: new Pieces(['a', 'b']) },
    })
    expect([forwarded, exchange.request.headers.has('content-length')]).toEqual(['<a><b>!?', false])
  })

  test('a streamed body of 20 MB', async () => {
    const { forwarded, answer } = await send(agree, {
      request: { method: 'POST', body: new LongBody(20_000_000) },
      response: { body: new LongBody(5_000_000), headers: {} },
    })
    expect([forwarded?.length, answer.length]).toEqual([20_000_000, 5_000_004])
  })

  test('the parts that it receives by a permitted mode override', async () => {
    const reply: Reply = { response: { case: 'responseHeaders', value: {} }, modeOverride: { responseBodyMode: Wire.BUFFERED } }
    const modes = { responseBodyMode: 'None', responseTrailerMode: 'Skip' } as const
    expect(kinds((await send(onlyWhen('responseHeaders', reply), { modes: { ...modes, allowModeOverride: true } })).seen)).toEqual([
      'requestHeaders',
      'responseHeaders',
      'responseBody',
    ])
    expect(kinds((await send(onlyWhen('responseHeaders', reply), { modes })).seen)).toEqual(['requestHeaders', 'responseHeaders'])
  })
})

describe('a mode override', () => {
  const modes = { allowModeOverride: true, requestTrailerMode: 'Skip', responseTrailerMode: 'Skip' } as const
  const overriding = (modeOverride: NonNullable<Reply['modeOverride']>): Processor =>
    onlyWhen('requestHeaders', { response: { case: 'requestHeaders', value: {} }, modeOverride }, true)

  test.each<[string, ExtProcProcessing, NonNullable<Reply['modeOverride']>, string[]]>([
    ['changes the parts of the response, which has not started', {}, { responseBodyMode: Wire.NONE }, ['requestHeaders', 'requestBody', 'responseHeaders']],
    [
      'lets a body stream',
      { requestBodyMode: 'None', responseBodyMode: 'None' },
      { requestBodyMode: Wire.FULL_DUPLEX_STREAMED },
      ['requestHeaders', 'requestBody', 'responseHeaders'],
    ],
    [
      'to a mode that is not spoken changes nothing',
      { responseBodyMode: 'None' },
      { responseBodyMode: Wire.STREAMED },
      ['requestHeaders', 'requestBody', 'responseHeaders'],
    ],
  ])('is applied to later parts: %s', async (_, configured, modeOverride, expected) => {
    const { seen, forwarded, answer } = await send(overriding(modeOverride), { modes: { ...modes, ...configured }, request: post('hello') })
    expect([[...new Set(kinds(seen))], forwarded, answer]).toEqual([expected, 'hello', '200 answer'])
  })

  test('does not change a body that is streaming already', async () => {
    const { seen, forwarded } = await send(overriding({ requestBodyMode: Wire.NONE }), {
      modes: { ...modes, responseBodyMode: 'None' },
      request: post('hello'),
    })
    expect([kinds(seen).includes('requestBody'), forwarded]).toEqual([true, 'hello'])
  })
})

describe('a processor that declares the length of its body', () => {
  const bodyReply = (length: string): Reply => ({
    response: {
      case: 'requestBody',
      value: {
        response: {
          headerMutation: { setHeaders: [setHeader('content-length', length)] },
          bodyMutation: { mutation: { case: 'body', value: Buffer.from('other') } },
        },
      },
    },
  })
  test.each<[string, string, string, ExtProcProcessing]>([
    ['with the right length', '5', '200 answer', {}],
    ['with a wrong length', '4', '500 ext_proc failed: the processor says content-length 4 and sends a body of 5 bytes', {}],
    ['with a wrong length but without headers', '4', '200 answer', { requestHeaderMode: 'Skip' }],
  ])('%s gets the expected response', async (_, length, expected, modes) => {
    const options: Options = { modes: { requestBodyMode: 'Buffered', responseBodyMode: 'None', ...modes }, request: post('hello') }
    expect((await send(onlyWhen('requestBody', bodyReply(length)), options)).answer).toBe(expected)
  })
})

describe('an immediate response', () => {
  const value = { status: { code: 451 }, headers: { setHeaders: [setHeader('x-by', 'processor')] }, body: Buffer.from('withheld') }
  const reply = { response: { case: 'immediateResponse', value } } as Reply

  test('to request headers is returned, and nothing is forwarded (row 56)', async () => {
    const { answer, forwarded, response, exchange } = await send(onlyWhen('requestHeaders', reply))
    expect([answer, forwarded, response?.headers.get('x-by'), exchange.error?.row.reason]).toEqual(['451 withheld', undefined, 'processor', 'ExtProc'])
  })

  test('to a buffered request body is returned to the client', async () => {
    const { answer, forwarded } = await send(onlyWhen('requestBody', reply), { modes: { requestBodyMode: 'Buffered' }, request: post('hello') })
    expect([answer, forwarded]).toEqual(['451 withheld', undefined])
  })

  test('to a streaming request body replaces the response of the upstream', async () => {
    const { answer } = await send(onlyWhen('requestBody', reply, true), { request: post('hello') })
    expect(answer).toBe('451 withheld')
  })

  test('to response headers replaces the response of the upstream', async () => {
    expect((await send(onlyWhen('responseHeaders', reply, true))).answer).toBe('451 withheld')
  })

  test.each([undefined, { code: 0 }])('without a status is sent with 200: %j', async (status) => {
    expect((await send(onlyWhen('requestHeaders', { response: { case: 'immediateResponse', value: { status } } }))).answer).toBe('200 ')
  })
})

describe('a processor that fails', () => {
  const broken = Object.assign(new Error('broken'), { code: 13, details: 'broken' })

  test.each<[string, Options, Processor]>([
    ['is unreachable', { port: 1 }, agree],
    ['ends with an error', {}, () => broken],
    ['replies to another message', {}, () => ({ response: { case: 'responseTrailers', value: {} } })],
    ['sends an empty reply', {}, () => ({})],
    ['exceeds the message timeout', { policy: { messageTimeout: '50ms' } }, () => undefined],
  ])('that %s leads to 500 or, with FailOpen, is skipped', async (_, options, processor) => {
    expect((await send(processor, options)).answer).toMatch(/^500 ext_proc failed: /)
    const failOpen = { ...options, policy: { ...options.policy, failureMode: 'FailOpen' as const } }
    expect((await send(processor, failOpen)).answer).toBe('200 answer')
  })

  test('that is unreachable is skipped for a request with a body too', async () => {
    const { answer, forwarded } = await send(agree, { port: 1, request: post('hello'), policy: { failureMode: 'FailOpen' } })
    expect([answer, forwarded]).toEqual(['200 answer', 'hello'])
  })

  test.each<[string, ExtProcProcessing, Processor]>([
    ['after a byte of the request body was sent', { requestBodyMode: 'Buffered' }, onlyWhen('requestBody', broken)],
    ['on the response', { responseBodyMode: 'None' }, onlyWhen('responseHeaders', broken, true)],
    ['on a buffered response body', { responseBodyMode: 'Buffered' }, onlyWhen('responseBody', broken, true)],
  ])('fails the request in any mode: %s', async (_, modes, processor) => {
    expect((await send(processor, { modes, request: post('hello'), policy: { failureMode: 'FailOpen' } })).answer).toMatch(/^500 ext_proc failed: /)
  })

  test('replaces the response of the upstream if a reply about the streaming request body is of another form', async () => {
    const whole: Reply = { response: { case: 'requestBody', value: { response: { bodyMutation: { mutation: { case: 'body', value: Buffer.from('x') } } } } } }
    expect((await send(onlyWhen('requestBody', whole, true), { request: post('hello') })).answer).toBe('500 ext_proc failed: protocol error')
  })

  test('aborts a response that is streaming', async () => {
    expect((await send(onlyWhen('responseBody', broken, true))).answer).toMatch(/^200 broken: ext_proc failed: /)
  })

  test('includes one that needs a body above the buffer limit', async () => {
    const { answer, forwarded } = await send(agree, { modes: { requestBodyMode: 'Buffered' }, maxBufferBytes: 4, request: post('hello') })
    expect([answer, forwarded]).toEqual(['500 ext_proc failed: the request body exceeds 4 bytes', undefined])
  })

  test('does not delay the request timeout', async () => {
    const prepare = (exchange: Exchange): void => void (exchange.deadlineAtMs = performance.now() + 60)
    expect((await send(() => undefined, { prepare, policy: { failureMode: 'FailOpen' } })).answer).toBe('504 request timeout')
  })
})
