import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from '@jest/globals'
import { resolveLivenessAddress } from './listen.ts'
import { startLiveness, type LivenessData, type LivenessMessage } from './liveness.ts'

const get = async (port: number, path = '/healthz/live'): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return `${response.status} ${await response.text()}`
}

describe('the liveness endpoint', () => {
  test('answers 200 while the event loop turns, and 404 for other paths', async () => {
    const { address, close } = await startLiveness({ host: '127.0.0.1', port: 0 })
    expect([await get(address.port), await get(address.port, '/')]).toEqual(['200 live', '404 not found'])
    await close()
    await expect(get(address.port)).rejects.toThrow()
  })

  test('answers 500 when the event loop has been blocked for ten seconds', async () => {
    const beat = new BigInt64Array(new SharedArrayBuffer(8))
    Atomics.store(beat, 0, process.hrtime.bigint() - 11_500_000_000n)
    const workerData: LivenessData = { address: { host: '127.0.0.1', port: 0 }, beat }
    const worker = new Worker(new URL('liveness-worker.ts', import.meta.url), { workerData })
    const [message] = (await once(worker, 'message')) as [LivenessMessage]
    const port = 'port' in message ? message.port : 0
    expect(await get(port)).toMatch(/^500 event loop blocked for \d+ s$/)
    Atomics.store(beat, 0, process.hrtime.bigint())
    expect(await get(port)).toBe('200 live')
    await worker.terminate()
  })

  test('names the setting if its port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await expect(startLiveness({ host: '127.0.0.1', port })).rejects.toThrow(
      /cannot listen on 127\.0\.0\.1:\d+ \(liveness endpoint\): .*EADDRINUSE.*; set LIVENESS_ADDR/,
    )
    other.close()
  })

  test.each([
    ['in a pod', {}, true, { host: '::', port: 15_022 }],
    ['elsewhere', {}, false, undefined],
    ['where its address is set', { LIVENESS_ADDR: '127.0.0.1:1' }, false, { host: '127.0.0.1', port: 1 }],
  ])('%s has the right address', (_, env, isInPod, expected) => expect(resolveLivenessAddress(env, isInPod)).toEqual(expected))
})
