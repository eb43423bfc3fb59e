import { describe, expect, test } from '@jest/globals'
import type { AttemptTarget } from '../../forward/attempt.ts'
import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import type { DestinationHooks } from '../../../net/upstream/hooks.ts'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { callPool } from './pool.ts'

const response = (status: number): ResponseHead => ({ status, headers: new HeaderList(), body: undefined, upgraded: undefined })
const request = (): RequestHead =>
  ({
    method: 'POST',
    target: '/v1/chat/completions',
    headers: new HeaderList(),
    authority: '10.0.0.1:80',
    body: new BufferBody('{"model":"llama"}'),
  }) as unknown as RequestHead

/** A call of a pool with two endpoints, whose picker does this. */
function run(choose: NonNullable<DestinationHooks['choose']>) {
  const exchange = new Exchange({ id: 1, bind: 'b' } as unknown as ConstructorParameters<typeof Exchange>[0], request(), 0)
  const endpoints = new Map(['10.0.0.1:80', '10.0.0.2:80'].map((label) => [label, { label }]))
  const destination = { name: 'pool', hooks: { choose }, endpointAt: (label: string) => endpoints.get(label) }
  const target = { destination, endpoint: endpoints.get('10.0.0.1:80'), request: request(), load: { pending: 0 } } as unknown as AttemptTarget
  const called: string[] = []
  const result = callPool(exchange, target, 1000, (picked) => {
    called.push(`${picked.endpoint.label} ${picked.request.authority} ${picked.request.headers.get('x-picked') ?? ''}`)
    return Promise.resolve(response(200))
  })
  return { result, called, exchange }
}

describe('a call of a pool', () => {
  test('goes to the endpoint that the picker chose, with its changes, and the picker receives the response', async () => {
    const seen: unknown[] = []
    const { result, called, exchange } = run((sent) => {
      seen.push(sent.request.body instanceof BufferBody)
      sent.request.headers.set('x-picked', 'yes')
      return Promise.resolve({
        labels: ['10.0.0.2:80'],
        by: 'the picker',
        abandon: () => undefined,
        report: () => Promise.resolve(void seen.push(sent.response?.status, sent.endpoint)),
      })
    })
    expect([(await result).status, called, seen]).toEqual([200, ['10.0.0.2:80 10.0.0.2:80 yes'], [true, 200, '10.0.0.2:80']])
    expect(exchange.request.headers.get('x-picked')).toBeUndefined()
  })

  test('returns the response of a picker that rejects the request', async () => {
    const { result, called } = run((sent) => {
      sent.response = response(429)
      return Promise.resolve(undefined)
    })
    expect([(await result).status, called]).toEqual([429, []])
  })

  test('fails if the endpoint is gone, and tells the picker', async () => {
    const abandoned: string[] = []
    const { result } = run(() =>
      Promise.resolve({ labels: ['10.0.0.9:80'], by: 'the picker', abandon: (error) => void abandoned.push(error.message), report: () => Promise.resolve() }),
    )
    await expect(result).rejects.toMatchObject({ code: 'NO_HEALTHY_BACKENDS' })
    expect(abandoned).toHaveLength(1)
  })

  test('ends with the request of the client', async () => {
    const reasons: string[] = []
    const { result, exchange } = run((sent) => {
      sent.onAbort((reason) => void reasons.push(reason.message))
      return Promise.resolve({ labels: undefined, by: 'the picker', abandon: () => undefined, report: () => Promise.resolve() })
    })
    exchange.abort(new Error('left'))
    expect([(await result).status, reasons]).toEqual([200, ['left']])
  })
})
