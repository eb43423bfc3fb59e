import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from './measure.ts'

// Client and server of the streams in one process, so that one clock times them: node sse-load.ts UPSTREAM_PORT PORT SECONDS STREAMS EVENTS_PER_SECOND
const [upstreamPort = 0, port = 0, seconds = 5, streams = 100, eventsPerSecond = 20] = process.argv.slice(2).map(Number)
const TICK_MS = 5
const PAYLOAD = 'x'.repeat(120)

const clients: ServerResponse[] = []
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.write(': open\n\n')
  clients.push(response)
})
server.listen(upstreamPort, '127.0.0.1')
await once(server, 'listening')

const delaysMs: number[] = []
let isMeasuring = false
for (let stream = 0; stream < streams; stream++) {
  const [response] = (await once(get({ port, host: '127.0.0.1', path: '/route-5/events', agent: false }), 'response')) as [IncomingMessage]
  let rest = ''
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const now = performance.now()
    const events = (rest + chunk).split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) {
      const sentAt = /^data: ([\d.]+) /.exec(event)?.[1]
      if (isMeasuring && sentAt !== undefined) delaysMs.push(now - Number(sentAt))
    }
  })
  response.on('error', () => {})
}

// Each tick sends on a few streams only: a burst on all streams would measure the burst.
const perTick = (streams * eventsPerSecond * TICK_MS) / 1000
let next = 0
const timer = setInterval(() => {
  for (let count = 0; count < perTick; count++) clients[next++ % streams]?.write(`data: ${performance.now()} ${PAYLOAD}\n\n`)
}, TICK_MS)
await sleep(500)
process.stdout.write('measuring\n')
isMeasuring = true
await sleep(seconds * 1000)
clearInterval(timer)
process.stdout.write(`${JSON.stringify({ events: delaysMs.length, p50: quantile(delaysMs, 0.5), p99: quantile(delaysMs, 0.99) })}\n`)
process.exit(0)
