import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { listenOptions } from './listen.ts'
import type { LivenessData, LivenessMessage } from './liveness.ts'

/** An event loop that has not turned for this long is blocked. */
const BLOCKED_NS = 10_000_000_000n

const { address, beat } = workerData as LivenessData
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
const report = (message: LivenessMessage): void => parentPort?.postMessage(message)

/** Entry of the liveness thread: the main thread is alive if its last beat is recent. */
const server = createServer({ requestTimeout: 10_000, headersTimeout: 5000, keepAliveTimeout: 5000 }, (request, response) => {
  if (request.url !== '/healthz/live') return void response.writeHead(404).end('not found')
  const sinceNs = process.hrtime.bigint() - Atomics.load(beat, 0)
  if (sinceNs < BLOCKED_NS) return void response.writeHead(200, { 'content-type': 'text/plain' }).end('live')
  response.writeHead(500, { 'content-type': 'text/plain' }).end(`event loop blocked for ${sinceNs / 1_000_000_000n} s`)
})
server.on('error', (error) => report({ error: error.message }))
server.listen(listenOptions(address), () => report({ port: (server.address() as AddressInfo).port }))
