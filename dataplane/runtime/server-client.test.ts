import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { makeCertificate } from '../../e2e/harness/certificates.ts'
import { isTrueWithin, waitUntil } from '../../e2e/harness/wait.ts'
import { ClickHouseStore } from '../store/ledger/clickhouse-store.ts'
import { readLedgerSettings } from '../store/ledger/settings.ts'
import { connectPostgres } from '../store/postgres/connection.ts'
import { readPostgresSettings } from '../store/postgres/settings.ts'
import { connectRedis } from '../store/redis/connection.ts'
import { readRedisSettings } from '../store/redis/settings.ts'
import { createLogging } from '../observe/telemetry/log.ts'
import { createRegistry } from '../observe/telemetry/metrics/registry.ts'

let directory: string
const closing: (() => unknown)[] = []
beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'server-'))))
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  rmSync(directory, { recursive: true, force: true })
})

/** The request of PostgreSQL's protocol for TLS, which comes before it. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** A TLS server on an address, with a certificate for `hosts`. `received` counts the bytes of clients that have accepted it. */
async function serve(address: string, hosts: readonly string[]) {
  const authority = makeCertificate({ name: 'authority', isAuthority: true })
  const { certificate, privateKey } = makeCertificate({ name: 'server', hosts, issuer: authority })
  writeFileSync(join(directory, 'ca.crt'), authority.certificate)
  const state = { received: 0, names: [] as unknown[] }
  const sockets = new Set<Socket>()
  const accept = (socket: Socket): void => {
    const tls = new TLSSocket(socket, { isServer: true, key: privateKey, cert: certificate })
    tls.on('secure', () => state.names.push((tls as { servername?: unknown }).servername))
    tls.on('data', ({ length }: Buffer) => (state.received += length))
    tls.on('error', () => undefined)
  }
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    socket.once('readable', () => {
      const first = socket.read() as Buffer | null
      if (first?.equals(SSL_REQUEST) === true) socket.write('S')
      else if (first !== null) socket.unshift(first)
      accept(socket)
    })
  })
  server.listen(0, address)
  await once(server, 'listening')
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { state, port: (server.address() as AddressInfo).port, caFile: join(directory, 'ca.crt') }
}

const valid = <T>(settings: T | string): T => {
  if (typeof settings === 'string') throw new Error(settings)
  return settings
}

const clients: Readonly<Record<string, (server: string, caFile: string) => void>> = {
  Redis(server, caFile) {
    const log = createLogging({ level: 'error', writer: { dropped: 0, write: () => true, flush: () => Promise.resolve(), flushSync: () => undefined } }).logger(
      'redis',
    )
    const redis = connectRedis({ settings: valid(readRedisSettings({ url: `rediss://${server}`, caFile })), log, registry: createRegistry() })
    closing.push(() => void redis.close())
  },
  PostgreSQL(server, caFile) {
    const settings = valid(readPostgresSettings('config.postgres', { url: `postgres://u@${server}/d`, caFile }))
    const postgres = connectPostgres(settings, { name: 't', version: 1, source: '' })
    closing.push(() => void postgres.close())
  },
  ClickHouse(server, caFile) {
    const { store } = valid(readLedgerSettings({ clickhouse: { url: `https://u@${server}/d`, caFile } }, 'ns/gw'))
    if (store.kind === 'clickhouse') new ClickHouseStore(store).prune(0).catch(() => undefined)
  },
}

describe.each(Object.keys(clients))('TLS to %s', (name) => {
  test.each([
    ['127.0.0.1', '127.0.0.1', ['127.0.0.1']],
    ['[::1]', '::1', ['::1']],
    ['localhost', 'localhost', ['localhost']],
  ])('to %s is accepted by the address or name in the certificate', async (host, address, hosts) => {
    const { state, port, caFile } = await serve(address, hosts)
    clients[name]?.(`${host}:${port}`, caFile)
    await waitUntil('the client speaks', () => state.received > 0)
    // An address is no server name.
    expect(state.names[0]).toBe(host === 'localhost' ? 'localhost' : false)
  })

  test.each([
    ['127.0.0.1', '127.0.0.1', ['10.0.0.1', 'localhost']],
    ['localhost', 'localhost', ['127.0.0.1', '::1']],
  ])('to %s is rejected if the certificate has another one', async (host, address, hosts) => {
    const { state, port, caFile } = await serve(address, hosts)
    clients[name]?.(`${host}:${port}`, caFile)
    expect(await isTrueWithin(300, () => state.received > 0)).toBe(false)
  })
})
