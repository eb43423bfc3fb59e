import { Worker } from 'node:worker_threads'
import { authorityOf } from '../../http/message.ts'
import { AddressError, type HostPort } from './listen.ts'

/** Milliseconds between two beats. */
const BEAT_MS = 1000

/** Data of the liveness thread. */
export interface LivenessData {
  readonly address: HostPort
  /** One value: `process.hrtime.bigint()` of the last turn of the main thread's event loop that beat. */
  readonly beat: BigInt64Array<SharedArrayBuffer>
}

/** Message of the liveness thread: the port in use, or why it cannot listen. */
export type LivenessMessage = { readonly port: number } | { readonly error: string }

/** A running liveness endpoint. */
export interface Liveness {
  readonly address: HostPort
  close(): Promise<void>
}

/**
 * Starts the liveness endpoint in a thread of its own, which answers while the event loop is blocked. It needs about 9 MiB.
 * @throws AddressError
 */
export async function startLiveness(address: HostPort): Promise<Liveness> {
  const beat = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT))
  const signal = (): void => void Atomics.store(beat, 0, process.hrtime.bigint())
  signal()
  const timer = setInterval(signal, BEAT_MS).unref()
  const workerData: LivenessData = { address, beat }
  const file = new URL(import.meta.url.endsWith('.ts') ? './liveness-worker.ts' : './liveness-worker.js', import.meta.url)
  const worker = new Worker(file, { workerData, resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 } })
  const close = async (): Promise<void> => {
    clearInterval(timer)
    await worker.terminate()
  }
  const message = await new Promise<LivenessMessage>((resolve) => {
    worker.once('message', resolve)
    worker.once('error', (error) => resolve({ error: String(error) }))
  })
  worker.unref()
  if ('port' in message) return { address: { host: address.host, port: message.port }, close }
  await close()
  throw new AddressError(
    `cannot listen on ${authorityOf(address.host, address.port)} (liveness endpoint): ${message.error}; set LIVENESS_ADDR to another host:port`,
  )
}
