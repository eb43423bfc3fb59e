import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

export interface SpliceResult {
  /** Bytes from the first to the second. */
  readonly forwardBytes: number
  readonly backwardBytes: number
  /** Undefined when both sides closed in order. */
  readonly error: Error | undefined
}

/**
 * Joins two connections as raw bytes, with back-pressure; a half-close is passed on, an error ends both. `onDone` is called once
 * both are closed. Nobody else may listen for their data any more. `onBytes` reports progress, for idle timeouts.
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
      breakOff(to)
    })
    if (from.closed) {
      to.destroy()
      closed()
    } else
      from.once('close', () => {
        // Closed without its end: the other direction cannot be completed either.
        if (!from.readableEnded || !from.writableFinished) breakOff(to)
        closed()
      })
    from.resume()
  }
  relay(first, second, (bytes) => (forwardBytes += bytes))
  relay(second, first, (bytes) => (backwardBytes += bytes))
}

/** Closes without the FIN or close_notify that would make a part look like the whole. */
function breakOff(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket) && !socket.destroyed) socket.resetAndDestroy()
  else socket.destroy()
}
