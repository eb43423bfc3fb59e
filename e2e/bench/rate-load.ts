import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from './measure.ts'

// A client that sends GETs at a fixed rate, whatever the responses take: node rate-load.ts PORT PATH SECONDS REQUESTS_PER_SECOND. Prints counts and latency.
const [, , port = '0', path = '/', seconds = '5', rate = '200'] = process.argv
const WARM_UP_MS = 500

const agent = new Agent({ keepAlive: true })
const delaysMs: number[] = []
let [open, failures, isMeasuring] = [0, 0, false]

function send(): void {
  const [sentAt, isCounted] = [performance.now(), isMeasuring]
  open++
  const end = (isSuccessful: boolean): void => {
    open--
    if (isCounted) delaysMs.push(performance.now() - sentAt)
    if (isCounted && !isSuccessful) failures++
  }
  get({ agent, host: '127.0.0.1', port: Number(port), path }, (response) => {
    response.resume()
    response.on('end', () => end(response.statusCode === 200))
  }).on('error', () => end(false))
}

const startedAt = performance.now()
const endMs = WARM_UP_MS + Number(seconds) * 1000
for (let nth = 0; ; nth++) {
  const dueMs = (nth * 1000) / Number(rate)
  if (dueMs >= endMs) break
  const waitMs = startedAt + dueMs - performance.now()
  if (waitMs > 0) await sleep(waitMs)
  isMeasuring = dueMs >= WARM_UP_MS
  send()
}
while (open > 0) await sleep(10)
process.stdout.write(`${JSON.stringify({ requests: delaysMs.length, failures, p50: quantile(delaysMs, 0.5), p99: quantile(delaysMs, 0.99) })}\n`)
process.exit(0)
