import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from './measure.ts'

// Client and server of streamed chat completions in one process, so that one clock times them: node llm-load.ts UPSTREAM_PORT PORT SECONDS STREAMS EVENTS_PER_SECOND
const [upstreamPort = 0, port = 0, seconds = 5, streams = 200, eventsPerSecond = 50] = process.argv.slice(2).map(Number)
const TICK_MS = 5

const clients: ServerResponse[] = []
const chunk = (content: string): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_760_000_000, model: 'gpt-4o', system_fingerprint: 'fp_bench', choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }] })}\n\n`
const server = createServer((incoming, response) => {
  incoming.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(chunk('begin '))
  clients.push(response)
})
server.listen(upstreamPort, '127.0.0.1')
await once(server, 'listening')

const delaysMs: number[] = []
let isMeasuring = false
const body = JSON.stringify({ model: 'gpt-4o', stream: true, messages: [{ role: 'user', content: 'count' }] })
for (let stream = 0; stream < streams; stream++) {
  const sent = request({ port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions', agent: false, headers: { 'content-type': 'application/json' } })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  // A guard holds back text that may be the start of a match, so the arrival of the time stamp is measured, even if its event was split.
  response.setEncoding('utf8').on('data', (piece: string) => {
    if (!isMeasuring) return
    const now = performance.now()
    for (const [, sentAt] of piece.matchAll(/at=(\d+\.\d+) /g)) delaysMs.push(now - Number(sentAt))
  })
  response.on('error', () => {})
}

const perTick = (streams * eventsPerSecond * TICK_MS) / 1000
let next = 0
const timer = setInterval(() => {
  for (let count = 0; count < perTick; count++) clients[next++ % streams]?.write(chunk(`at=${performance.now().toFixed(6)} word `))
}, TICK_MS)
await sleep(1000)
process.stdout.write('measuring\n')
isMeasuring = true
await sleep(seconds * 1000)
clearInterval(timer)
process.stdout.write(`${JSON.stringify({ events: delaysMs.length, p50: quantile(delaysMs, 0.5), p99: quantile(delaysMs, 0.99) })}\n`)
process.exit(0)
