import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { modes, startEnvironment, type Environment } from './environment.ts'

const GIB = 1024 ** 3
const MIB = 1024 ** 2
/** What a transfer may add to the resident set, bodies of any size included. */
const ALLOWED_GROWTH = 96 * MIB

describe.each(modes)('memory of a data plane with a %s', (mode) => {
  let environment: Environment
  beforeAll(async () => {
    environment = await startEnvironment(mode)
    // Warm up: the first requests load code and grow the heap.
    for (let count = 0; count < 3; count++) await download(environment, 32 * MIB, Infinity)
    await upload(environment, 32 * MIB, Infinity)
  })
  afterAll(() => environment?.stop())

  test('stays flat during 1 GiB to a client that reads slowly', async () => {
    const { growth, result } = await watchMemory(environment.dataplane.program.pid, () => download(environment, GIB, 300 * MIB))
    expect(result).toBe(GIB)
    expect(growth).toBeLessThan(ALLOWED_GROWTH)
  }, 240_000)

  test('stays flat during 1 GiB to an upstream that reads slowly', async () => {
    const { growth, result } = await watchMemory(environment.dataplane.program.pid, () => upload(environment, GIB, 300 * MIB))
    expect(result).toBe(GIB)
    expect(growth).toBeLessThan(ALLOWED_GROWTH)
  }, 240_000)

  test('stays flat while a client does not read at all', async () => {
    const { growth } = await watchMemory(environment.dataplane.program.pid, async () => {
      const response = await open(environment, `/?size=${GIB}`)
      await sleep(1000)
      response.destroy()
    })
    expect(growth).toBeLessThan(ALLOWED_GROWTH)
  })
})

async function open(environment: Environment, path: string): Promise<IncomingMessage> {
  const sent = request({ port: environment.ports.HTTP, path, headers: { host: 'plain.test' }, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  return response
}

/** Requests a body of `bytes` and reads it at `bytesPerSecond`; returns the number of received bytes. */
async function download(environment: Environment, bytes: number, bytesPerSecond: number): Promise<number> {
  const started = Date.now()
  let received = 0
  for await (const chunk of await open(environment, `/?size=${bytes}`)) {
    received += (chunk as Buffer).length
    const aheadMs = (received / bytesPerSecond) * 1000 - (Date.now() - started)
    if (aheadMs > 10) await sleep(aheadMs)
  }
  return received
}

/** Sends a body of `bytes` to an upstream that reads `bytesPerSecond`; returns the number of bytes it read. */
async function upload(environment: Environment, bytes: number, bytesPerSecond: number): Promise<number> {
  const path = Number.isFinite(bytesPerSecond) ? `/?rate=${bytesPerSecond}` : '/'
  const sent = request({ port: environment.ports.HTTP, path, method: 'PUT', headers: { host: 'plain.test', 'content-length': bytes }, agent: false })
  const chunk = Buffer.alloc(MIB, 'z')
  const source = Readable.from(
    (function* () {
      for (let left = bytes; left > 0; left -= chunk.length) yield chunk
    })(),
  )
  const [[response]] = (await Promise.all([once(sent, 'response'), pipeline(source, sent)])) as [[IncomingMessage], void]
  return (JSON.parse((await response.toArray()).join('')) as { bodyBytes: number }).bodyBytes
}

/** Runs `run` and returns the largest growth of the resident set in the meantime, in bytes. */
async function watchMemory<T>(pid: number, run: () => Promise<T>): Promise<{ growth: number; result: T }> {
  const before = await residentBytes(pid)
  let highest = before
  let isDone = false
  const watching = (async () => {
    while (!isDone) {
      highest = Math.max(highest, await residentBytes(pid))
      await sleep(20)
    }
  })()
  try {
    return { result: await run(), growth: highest - before }
  } finally {
    isDone = true
    await watching
  }
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024
}
