import { afterEach, describe, expect, test } from '@jest/globals'
import { parseExposition } from '../../testing/exposition.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { createLogging } from './log.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { createTelemetry, type Telemetry } from './telemetry.ts'

const lines: string[] = []
let dropped = 0
let flushes = 0
let telemetry: Telemetry | undefined

function start(level?: string): Telemetry {
  lines.length = 0
  const writer = {
    get dropped() {
      return dropped
    },
    write: (line: string) => lines.push(line) > 0,
    flush: () => Promise.resolve(void flushes++),
    flushSync: () => undefined,
  }
  telemetry = createTelemetry(createLogging({ writer, level }), { version: '1.0' })
  return telemetry
}
afterEach(() => telemetry?.close())

function makeExchange(): Exchange {
  const connection = { ...testConnection, remoteAddress: '10.0.0.1', remotePort: 2 }
  const exchange = new Exchange(connection, testRequest({ authority: 'a' }), performance.now())
  exchange.response = { status: 204, headers: new HeaderList(), body: undefined, upgraded: undefined }
  return exchange
}
const read = (from: Telemetry) => parseExposition([...from.metrics.registry.expose('text')].join(''), 'text')

describe('telemetry', () => {
  test('onFinished counts an exchange and writes its log line', () => {
    const own = start()
    own.onFinished(makeExchange())
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/\tinfo\trequest src\.addr=10\.0\.0\.1:2 .* http\.status=204 .* duration=\d+ms\n$/)
    expect(read(own).value('proxy_requests_total', { status: '204' })).toBe(1)
  })

  test('counts exchanges with the access log off', () => {
    const own = start('request=off')
    own.onFinished(makeExchange())
    expect(lines).toEqual([])
    expect(read(own).value('proxy_requests_total')).toBe(1)
  })

  test('reports an exchange that cannot be recorded without throwing', () => {
    const own = start()
    const exchange = makeExchange()
    Object.defineProperty(exchange, 'response', {
      get() {
        throw new Error('broken exchange')
      },
    })
    expect(() => own.onFinished(exchange)).not.toThrow()
    expect(lines[0]).toMatch(/\terror\ttelemetry\texchange not recorded code=PX4011 error="broken exchange"\n$/)
  })

  test('exposes dropped lines as a metric, and close flushes', async () => {
    const own = start()
    dropped = 3
    expect(read(own).value('proxy_log_lines_dropped_total')).toBe(3)
    const before = flushes
    await own.close()
    expect(flushes).toBe(before + 1)
  })
})
