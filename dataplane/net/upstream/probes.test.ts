import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from '@jest/globals'
import { upstreamSettings } from '../destination/upstream.ts'
import { connectTcp } from './tcp.ts'
import type { TcpProbes } from './types.ts'

/** Seconds until the kernel's keep-alive timer of a connection between two ports of this machine; undefined: none runs (proc_net_tcp). */
function secondsToProbe(localPort: number, remotePort: number): number | undefined {
  const [local, remote] = [localPort, remotePort].map((port) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`)
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((text) => text.trim().split(/\s+/))
    .find(([, from, to]) => from === local && to === remote)
  const [kind, when] = line?.[5]?.split(':') ?? []
  return kind === '02' && when !== undefined ? Number.parseInt(when, 16) / 100 : undefined
}

test.each<[string, TcpProbes | undefined, number | undefined]>([
  ['the probes of the policy', { timeMs: 60_000, intervalMs: 5000, retries: 3 }, 60],
  ['no probes without a policy', undefined, undefined],
])('an upstream connection has %s', async (_, probes, seconds) => {
  const server = createServer((socket) => socket.on('error', () => undefined))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const socket = await connectTcp({ host: '127.0.0.1', port, tls: undefined, keepAlive: undefined, probes }, 20_000).socket
  const left = secondsToProbe(socket.localPort ?? 0, port)
  socket.destroy()
  await new Promise((resolve) => server.close(resolve))
  if (seconds === undefined) expect(left).toBeUndefined()
  else expect(Math.abs((left ?? 0) - seconds)).toBeLessThan(30)
})

test.each([
  [{}, { timeMs: 180_000, intervalMs: 180_000, retries: 9 }],
  [
    { time: '1m', interval: '5s', retries: 3 },
    { timeMs: 60_000, intervalMs: 5000, retries: 3 },
  ],
])('the keepalive section %j of a backend policy is compiled', (keepalive, expected) => {
  const target = { host: 'a', port: undefined, inline: { tcp: { keepalive } }, outer: undefined }
  const find = (): never => {
    throw new Error('there is no tunnel')
  }
  expect(upstreamSettings(target, [], new Map(), find).probes).toEqual(expected)
})
