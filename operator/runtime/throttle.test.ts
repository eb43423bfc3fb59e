import { expect, test } from '@jest/globals'
import { createLog } from './log.ts'
import { createFailureLog } from './throttle.ts'

test('one line a minute is logged for failures of one cause, with the number of suppressed ones', () => {
  let now = 0
  const lines: string[] = []
  const log = createLog('info', (line) =>
    lines.push((JSON.parse(line) as { message: string; suppressed?: number }).message + (line.match(/"suppressed":\d+/)?.[0] ?? '')),
  )
  const logFailure = createFailureLog(log, () => now)
  const refused = (path: string): Error =>
    new Error(`GET ${path}: connect ECONNREFUSED 10.0.0.1:443`, { cause: new Error('connect ECONNREFUSED 10.0.0.1:443') })
  for (; now < 59_000; now += 1000) for (const kind of ['gateways', 'services']) logFailure(`watch of ${kind}`, refused(`/apis/${kind}`), 'it is retried')
  logFailure('watch of services', new Error('GET /apis/services: forbidden'), 'it is retried')
  expect(lines).toEqual([
    'watch of gateways: GET /apis/gateways: connect ECONNREFUSED 10.0.0.1:443; it is retried',
    'watch of services: GET /apis/services: forbidden; it is retried',
  ])
  now = 60_000
  logFailure('watch of services', refused('/apis/services'), 'it is retried')
  logFailure('Lease', refused('/apis/leases'), 'the election continues')
  expect(lines.slice(2)).toEqual(['watch of services: GET /apis/services: connect ECONNREFUSED 10.0.0.1:443; it is retried"suppressed":117'])
})

test('a failure whose cause is an error response is grouped by message, without its path', () => {
  const lines: string[] = []
  const logFailure = createFailureLog(
    createLog('info', (line) => lines.push(line)),
    () => 0,
  )
  for (const kind of ['a', 'b', 'c']) logFailure(kind, new Error(`GET /apis/${kind}: the server is shutting down`), 'it is retried')
  expect(lines).toHaveLength(1)
})
