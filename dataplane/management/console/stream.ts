import type { Context } from 'hono'
import { setTimeout as wait } from 'node:timers/promises'
import { streamSSE } from 'hono/streaming'

/** Sends a value at once and then in intervals until the client disconnects or `read` fails. `onEnd` is called once. */
export function streamValues(c: Context, event: string, intervalMs: number, read: () => Promise<unknown>, onEnd?: () => void): Response {
  return streamSSE(c, async (stream) => {
    const left = new AbortController()
    const { signal } = left
    stream.onAbort(() => left.abort())
    try {
      while (!signal.aborted) {
        await stream.writeSSE({ event, data: JSON.stringify(await read()) })
        await wait(intervalMs, undefined, { signal }).catch(() => undefined)
      }
    } catch (error) {
      await stream.writeSSE({ event: 'failure', data: JSON.stringify({ error: error instanceof RangeError ? error.message : 'internal error' }) })
    } finally {
      onEnd?.()
    }
  })
}
