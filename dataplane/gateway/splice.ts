import { sharedDeadlines, type Deadlines, type Waiter } from '../http/deadlines.ts'
import { spliceSockets } from '../http/splice.ts'
import { connectTcp } from '../net/upstream/tcp.ts'
import type { Transport, UpstreamError } from '../net/upstream/types.ts'
import type { TcpConnection } from '../net/server/program.ts'

export interface RelayOptions {
  readonly connectMs: number
  /** Milliseconds without a byte in either direction; 0: no limit. Default: one hour. */
  readonly idleMs?: number
  readonly deadlines?: Deadlines
}

export interface RelayResult {
  readonly receivedBytes: number
  readonly sentBytes: number
  /** An UpstreamError if the endpoint could not be reached. */
  readonly error: Error | undefined
}

const DEFAULT_RELAY_IDLE_MS = 3_600_000

/**
 * Relays a client's connection to an endpoint: bytes, half-closes, resets. Resolves when both sides are closed; never rejects.
 * Resets the client's connection if the endpoint cannot be reached.
 */
export async function relayTcp(tcp: TcpConnection, transport: Transport, options: RelayOptions): Promise<RelayResult> {
  const { socket: client, initial } = tcp
  const opening = connectTcp(transport, options.connectMs)
  const onClientClosed = (): void => opening.cancel()
  client.once('close', onClientClosed)
  let upstream
  try {
    upstream = await opening.socket
  } catch (error) {
    if (client.destroyed || 'encrypted' in client) client.destroy()
    else client.resetAndDestroy()
    return { receivedBytes: 0, sentBytes: 0, error: error as UpstreamError }
  }
  client.removeListener('close', onClientClosed)
  const initialBytes = initial?.length ?? 0
  if (initial !== undefined) upstream.write(initial)
  const opened = upstream
  return new Promise((resolve) => {
    const idle = new IdleWatch(options, () => {
      client.destroy()
      opened.destroy()
    })
    spliceSockets(client, opened, {
      onBytes: () => idle.touch(),
      onDone: ({ forwardBytes, backwardBytes, error }) => {
        idle.end()
        resolve({ receivedBytes: forwardBytes + initialBytes, sentBytes: backwardBytes, error: error ?? idle.error })
      },
    })
  })
}

class IdleWatch implements Waiter {
  deadlineMs = Infinity
  error: Error | undefined
  readonly #idleMs: number
  readonly #deadlines: Deadlines
  readonly #close: () => void

  constructor({ idleMs = DEFAULT_RELAY_IDLE_MS, deadlines = sharedDeadlines }: RelayOptions, close: () => void) {
    this.#idleMs = idleMs
    this.#deadlines = deadlines
    this.#close = close
    if (idleMs === 0) return
    deadlines.add(this)
    this.touch()
  }

  touch(): void {
    if (this.#idleMs > 0) this.deadlineMs = this.#deadlines.nowMs + this.#idleMs
  }

  expire(): void {
    this.deadlineMs = Infinity
    this.error = new Error(`nothing was sent for ${this.#idleMs} ms`)
    this.#close()
  }

  end(): void {
    this.#deadlines.remove(this)
  }
}
