import { describe, expect, test } from '@jest/globals'
import { BufferBody, readBody, type Body } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { compose } from '../../request/exchange/compose.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { ManualBody } from '../../testing/body.ts'
import { compileRequestBody } from './index.ts'

/** Sends a request through a limit of 10 bytes, to an upstream that reads it. */
function start(body: Body | undefined, { grpc = false, timeoutMs }: { grpc?: boolean; timeoutMs?: number } = {}) {
  let received: string | undefined
  const request = testRequest({ method: 'POST', body, headers: HeaderList.from(grpc ? [['content-type', 'application/grpc']] : []) })
  const exchange = new Exchange(testConnection, request, performance.now())
  if (timeoutMs !== undefined) exchange.deadlineAtMs = performance.now() + timeoutMs
  const done = compose([compileRequestBody({ maxSize: 10 })], async () => {
    received = ''
    received = (await readBody(request.body, 1000)).bytes.toString()
    exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
  })(exchange)
  return { exchange, done, result: () => [exchange.response?.status, received] }
}

describe('a body of known length', () => {
  test.each([
    ['1234567890', 200, '1234567890'],
    ['12345678901', 413, undefined],
  ])('%j gets %d, and the upstream receives %j', async (text, status, received) => {
    const run = start(new BufferBody(text))
    await run.done
    expect(run.result()).toEqual([status, received])
  })

  test('is not read by the policy', () => {
    const body = new ManualBody(11)
    expect([start(body).result(), body.asked]).toEqual([[413, undefined], []])
  })
})

describe('a body of unknown length', () => {
  test('reaches the upstream when it has ended', async () => {
    const body = new ManualBody()
    const run = start(body)
    body.push('12345')
    body.push('67890')
    await Promise.resolve()
    expect(run.result()).toEqual([undefined, undefined])
    body.end()
    await run.done
    expect(run.result()).toEqual([200, '1234567890'])
  })

  test('gets 413 with the first byte above the limit, and the rest is not read', async () => {
    const body = new ManualBody()
    const run = start(body)
    body.push('1234567890')
    body.push('1')
    await run.done
    expect([run.result(), body.asked.at(-1)]).toEqual([[413, undefined], 'cancel'])
  })

  test('that breaks off or does not end in time does not reach the upstream', async () => {
    const broken = new ManualBody()
    const run = start(broken)
    broken.push('1')
    broken.fail(new Error('reset'))
    await run.done
    const late = start(new ManualBody(), { timeoutMs: 5 })
    await late.done
    expect([run.result(), late.result()]).toEqual([
      [503, undefined],
      [504, undefined],
    ])
  })

  test('of a gRPC request streams up to the limit', async () => {
    const body = new ManualBody()
    const run = start(body, { grpc: true })
    body.push('1234567890')
    expect(run.result()).toEqual([undefined, ''])
    body.push('1')
    await run.done
    expect([run.result()[0], run.exchange.response?.headers.get('grpc-status')]).toEqual([200, '8'])
  })
})
