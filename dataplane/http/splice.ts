import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/** Totals of a splice, when both sides are closed. */
export interface SpliceResult {
  /** Bytes from the first to the second connection. */
  readonly forwardBytes: number
  readonly backwardBytes: number
  /** Undefined if both sides closed gracefully. */
  readonly error: Error | undefined
}

/**
 * Relays raw bytes between two connections, with back-pressure. A half-close is forwarded, an error ends both. `onDone` is called once
 * both are closed. Nothing else may read from them. `onBytes` reports progress, for idle timeouts.
 */
export function spliceSockets(
  first: Duplex,
  second: Duplex,
  options: { readonly onDone: (result: SpliceResult) => void; readonly onBytes?: (count: number) => void },
): void {
  let forwardBytes = 0
  let backwardBytes = 0
  let error: Error | undefined
  let open = 2
  const closed = (): void => {
    if (--open > 0) return
    options.onDone({ forwardBytes, backwardBytes, error })
  }
  const relay = (from: Duplex, to: Duplex, count: (bytes: number) => void): void => {
    if ('allowHalfOpen' in from) from.allowHalfOpen = true
    from.on('data', (chunk: Buffer) => {
      count(chunk.length)
      options.onBytes?.(chunk.length)
      if (!to.write(chunk)) from.pause()
    })
    to.on('drain', () => from.resume())
    from.on('end', () => to.end())
    from.on('error', (thrown: Error) => {
      error ??= thrown
      abort(to)
    })
    if (from.closed) {
      to.destroy()
      closed()
    } else
      from.once('close', () => {
        // Closed without FIN: the other direction cannot be completed either.
        if (!from.readableEnded || !from.writableFinished) abort(to)
        closed()
      })
    from.resume()
  }
  relay(first, second, (bytes) => (forwardBytes += bytes))
  relay(second, first, (bytes) => (backwardBytes += bytes))
}

/** Closes without FIN or close_notify, which would make a partial message look complete. */
function abort(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket) && !socket.destroyed) socket.resetAndDestroy()
  else socket.destroy()
}
