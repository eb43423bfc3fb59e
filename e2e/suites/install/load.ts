import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** What came of a load. */
interface LoadResult {
  readonly requests: number
  /** What went wrong, at most 20 of them: other status, no answer. */
  readonly failures: readonly string[]
}

export interface Load {
  /** Requests answered so far. */
  readonly answered: () => number
  stop(): Promise<LoadResult>
}

/**
 * Sends GETs to a URL until it is stopped: `kept` clients reuse their connection, as many others make a new one for each request.
 * A request is never sent twice, but for one on a kept connection that was closed before a byte of an answer: HTTP allows a server to do that
 * (RFC 9112 section 9.3.1), and every client sends such a GET again.
 */
export function startLoad(url: string, { kept = 4, fresh = 4, everyMs = 20 }: { kept?: number; fresh?: number; everyMs?: number } = {}): Load {
  let isStopped = false
  let requests = 0
  const failures: string[] = []
  const startedAt = Date.now()
  const fail = (text: string): void => {
    if (failures.length < 20) failures.push(`after ${((Date.now() - startedAt) / 1000).toFixed(1)} s: ${text}`)
  }
  const client = async (agent: Agent | undefined): Promise<void> => {
    while (!isStopped) {
      try {
        let answer = await send(url, agent)
        if (answer === 'stale') answer = await send(url, agent)
        if (answer !== 200) fail(`${answer}`)
      } catch (error) {
        fail(error instanceof Error ? error.message : String(error))
      }
      requests += 1
      await sleep(everyMs)
    }
    agent?.destroy()
  }
  const clients = [
    ...Array.from({ length: kept }, () => client(new Agent({ keepAlive: true, maxSockets: 1 }))),
    ...Array.from({ length: fresh }, () => client(undefined)),
  ]
  return {
    answered: () => requests,
    async stop() {
      isStopped = true
      await Promise.all(clients)
      return { requests, failures }
    },
  }
}

/** Below those that the system hands out (32768 on), and below NodePorts. */
const FIRST_PORT = 2_000
const PORTS = 28_000
let lastPort = 0

/**
 * Ports in turn, which nobody else uses. The system would choose at random: of a few thousand connections one would get the port of another,
 * perhaps of another client, whose entry in the node's connection tracking has not ended, and with it the way to a pod that is gone. That is
 * one busy node's trouble, not the gateway's.
 */
function nextPort(): number {
  lastPort = (lastPort + 1) % PORTS
  return FIRST_PORT + lastPort
}

function send(url: string, agent: Agent | undefined): Promise<number | 'stale'> {
  return new Promise((resolve, reject) => {
    const options = agent === undefined ? { agent: false as const, localPort: nextPort() } : { agent }
    const sent = request(url, { ...options, timeout: 30_000 }, (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    sent.on('timeout', () => sent.destroy(new Error('no answer within 30 s')))
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(send(url, agent))
      else if (sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) resolve('stale')
      else reject(error)
    })
    sent.end()
  })
}
