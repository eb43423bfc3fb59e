import { describe, expect, test } from '@jest/globals'
import { evalHost } from '#api/cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { BufferBody, readBody, type Body } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { testExchange } from '../../testing/exchange.ts'
import { bufferRequest } from './buffer.ts'
import { compileExpression } from './program.ts'
import { prepareRecorded, recordBodies, type BodyRecording } from './record.ts'
import { ExchangeView } from './view.ts'

const both: BodyRecording = { request: true, response: true, limitBytes: 5 }
const evaluate = (exchange: Exchange, expression: string): unknown => evalHost(compileExpression(expression, 'log'), new ExchangeView(exchange))

/** Forwards bodies while they are recorded. Returns the bytes that the upstream and the client received. */
async function pass(exchange: Exchange, recording: BodyRecording, bodies: { request?: Body; response?: Body }): Promise<string[]> {
  exchange.request.body = bodies.request
  let received: Buffer = Buffer.alloc(0)
  await recordBodies(exchange, recording, async () => {
    received = (await readBody(exchange.request.body, 100)).bytes
    exchange.response = { status: 200, headers: new HeaderList(), body: bodies.response, upgraded: undefined }
  })
  const { bytes } = await readBody(exchange.response?.body, 100)
  return [received.toString(), bytes.toString()]
}

describe('recorded bodies in log expressions (traffic.md §9, body rule)', () => {
  test.each<[string, string, unknown]>([
    ['the request body', 'string(request.body)', 'ask'],
    ['the response body up to the limit', 'string(response.body)', 'answe'],
    ['the prefixes of both bodies', 'string(request.bodyPrefix) + string(response.bodyPrefix)', 'askanswe'],
  ])('have %s after the exchange ended', async (_, expression, expected) => {
    const exchange = testExchange()
    expect(await pass(exchange, both, { request: new BufferBody('ask'), response: new BufferBody('answered') })).toEqual(['ask', 'answered'])
    expect(evaluate(exchange, expression)).toBeUndefined()
    exchange.finishedAtMs = 1
    expect(evaluate(exchange, expression)).toEqual(expected)
  })

  test('are parsed in advance if they are long and an expression parses JSON', async () => {
    const parse = async (text: string, parses: boolean): Promise<unknown[]> => {
      const exchange = testExchange()
      exchange.request.body = new BufferBody(text)
      await recordBodies(
        exchange,
        { request: true, response: false, limitBytes: 1_000_000, parses },
        async () => void (await readBody(exchange.request.body, Infinity)),
      )
      exchange.finishedAtMs = 1
      const parsing = prepareRecorded(exchange)
      await parsing
      return [parsing !== undefined, evaluate(exchange, 'json(request.body).id == 9007199254740993')]
    }
    const long = `{"id":9007199254740993,"x":[${'1,'.repeat(90_000)}1]}`
    expect(await parse('{"id":9007199254740993}', true)).toEqual([false, true])
    expect(await parse(long, false)).toEqual([false, true])
    expect(await parse(long, true)).toEqual([true, true])
  })

  test('are recorded only on request, and a message without a body has an empty one', async () => {
    const exchange = testExchange()
    await pass(exchange, { ...both, response: false }, { response: new BufferBody('answered') })
    exchange.finishedAtMs = 1
    expect([evaluate(exchange, 'string(request.body)'), evaluate(exchange, 'response.body')]).toEqual(['', undefined])
  })

  test('are those that a policy has buffered, if any', async () => {
    const exchange = testExchange()
    exchange.request.body = new BufferBody('whole body')
    await recordBodies(exchange, both, () => bufferRequest(exchange, 100))
    exchange.finishedAtMs = 1
    expect(evaluate(exchange, 'string(request.body)')).toBe('whole body')
  })
})
