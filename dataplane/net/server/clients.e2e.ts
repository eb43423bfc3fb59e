import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { makeAuthority, makeCertificate } from '../../testing/certificates.ts'
import { describeRequest, run, startBind, type TestBind } from './testing.ts'
import { createTlsChoices, type TlsListener } from './tls.ts'

// Needs curl and openssl: clients that share no code with Node's.

const folder = mkdtempSync(join(tmpdir(), 'server-clients-'))
const path = (name: string): string => join(folder, name)
const ca = makeAuthority('Our CA')
const otherCa = makeAuthority('Their CA')
const a = makeCertificate({ name: 'a.example.com', authority: ca })
const b = makeCertificate({ name: 'b.example.com', authority: ca })
const client = makeCertificate({ name: 'alice', authority: ca })
const stranger = makeCertificate({ name: 'mallory', authority: otherCa })

beforeAll(() => {
  for (const [name, { certificate, privateKey }] of Object.entries({ ca, client, stranger })) {
    writeFileSync(path(`${name}.crt`), certificate)
    writeFileSync(path(`${name}.key`), privateKey)
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

const open: TestBind[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close()
})

const choices = createTlsChoices()
const listener = (key: string, change: Partial<TlsListener> = {}): TlsListener => ({ key, kind: 'terminate-http', certificates: [a], ...change })

async function start(table: Record<string, TlsListener>): Promise<TestBind> {
  const server = await startBind(describeRequest, {
    plaintext: 'http',
    hasTls: true,
    selectTls: (sni) => {
      const found = table[sni ?? '']
      return found && choices.get(found)
    },
  })
  open.push(server)
  return server
}

describe('curl over plaintext', () => {
  test.each([
    ['uses HTTP/2 by prior knowledge', '--http2-prior-knowledge', 'HTTP/2'],
    ['uses HTTP/1.1 on the same port', '--http1.1', 'HTTP/1.1'],
    ['stays on HTTP/1.1 when it offers an Upgrade to h2c', '--http2', 'HTTP/1.1'],
  ])('%s', async (_, option, version) => {
    const { port } = await start({})
    const output = await run('curl', ['-sS', option, '-d', 'hello', '-w', ' %{http_version}', `http://127.0.0.1:${port}/path`])
    expect(output).toContain(`"version":"${version}"`)
    expect(output).toContain('"body":"hello"')
  })
})

describe('TLS', () => {
  test('curl gets HTTP/2 and openssl HTTP/1.1 from the listener of their SNI', async () => {
    const { port } = await start({ 'a.example.com': listener('la'), 'b.example.com': listener('lb', { certificates: [b] }) })
    const verify = ['--cacert', path('ca.crt'), '--resolve', `a.example.com:${port}:127.0.0.1`]
    const curl = await run('curl', ['-sS', '--http2', ...verify, '-w', ' %{http_version}', `https://a.example.com:${port}/x`])
    expect(curl).toContain('"version":"HTTP/2"')
    expect(curl).toContain('"listener":"la"')
    expect(curl.endsWith(' 2')).toBe(true)
    const openssl = await run('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, '-servername', 'b.example.com', '-alpn', 'http/1.1'])
    expect(openssl).toContain('CN = b.example.com')
    expect(openssl).toContain('ALPN protocol: http/1.1')
  })

  test('openssl s_client is served only with a client certificate of the configured authority', async () => {
    const clientValidation = { mode: 'AllowValidOnly', caCertificates: [ca.certificate] } as const
    const { port } = await start({ 'a.example.com': listener('l', { clientValidation }) })
    const request = 'GET / HTTP/1.1\r\nhost: a.example.com\r\nconnection: close\r\n\r\n'
    const base = ['s_client', '-quiet', '-ign_eof', '-connect', `127.0.0.1:${port}`, '-servername', 'a.example.com', '-CAfile', path('ca.crt')]
    expect(await run('openssl', [...base, '-cert', path('client.crt'), '-key', path('client.key')], request)).toContain('"subjectCn":"alice"')
    expect(await run('openssl', [...base, '-cert', path('stranger.crt'), '-key', path('stranger.key')], request)).not.toContain('200 OK')
    expect(await run('openssl', base, request)).not.toContain('200 OK')
  })
})
