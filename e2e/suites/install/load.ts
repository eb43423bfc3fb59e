import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** Result of a load. */
interface LoadResult {
  readonly requests: number
  /** At most 20 failures: another status or no response. */
  readonly failures: readonly string[]
}

/** A running load. */
export interface Load {
  /** Number of responses so far. */
  readonly responses: () => number
  stop(): Promise<LoadResult>
}

/**
 * Sends GETs to a URL until it is stopped: `kept` clients reuse their connection, `fresh` clients open a new one for each request. A request is sent again only
 * if the server closed a reused connection before it sent a byte of the response, as HTTP allows (RFC 9112 §9.3.1) and every client does.
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
        let outcome = await send(url, agent)
        if (outcome === 'stale') outcome = await send(url, agent)
        if (outcome !== 200) fail(`${outcome}`)
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
    responses: () => requests,
    async stop() {
      isStopped = true
      await Promise.all(clients)
      return { requests, failures }
    },
  }
}

/** Below the ephemeral ports (from 32768) and below NodePorts. */
const FIRST_PORT = 2_000
const PORTS = 28_000
let lastPort = 0

/**
 * Returns source ports in sequence. The kernel chooses them at random, so that one of some thousand connections would reuse a port whose conntrack entry has not
 * expired and leads to a deleted pod. That is a problem of one busy node, not of the gateway.
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
    sent.on('timeout', () => sent.destroy(new Error('no response within 30 s')))
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(send(url, agent))
      else if (sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) resolve('stale')
      else reject(error)
    })
    sent.end()
  })
}
