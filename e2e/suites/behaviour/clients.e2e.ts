import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { makeCertificate } from '../../harness/certificates.ts'
import { modes, startEnvironment, type Environment } from './environment.ts'

// Tests with curl and openssl, which share no code with Node.

const run = promisify(execFile)

describe.each(modes)('with a %s', (mode) => {
  let environment: Environment
  let keys: string
  beforeAll(async () => {
    environment = await startEnvironment(mode)
    keys = await mkdtemp(join(tmpdir(), 'behaviour-keys-'))
    const client = makeCertificate({ name: 'client', hosts: ['client.test'], issuer: environment.authority })
    await writeFile(join(keys, 'ca.pem'), environment.authority.certificate)
    await writeFile(join(keys, 'client.pem'), client.certificate + client.privateKey)
  })
  afterAll(async () => {
    await environment?.stop()
    await rm(keys, { recursive: true, force: true })
  })
  const curl = async (...args: string[]) => (await run('curl', ['-sS', '--max-time', '60', ...args])).stdout

  test('curl keeps one HTTP/1.1 connection for two requests', async () => {
    const url = `http://127.0.0.1:${environment.ports.HTTP}/`
    const text = await curl('-w', '%{num_connects}', '-o', '/dev/null', '-o', '/dev/null', '-H', 'host: plain.test', url, url)
    expect(text).toBe('10')
  })

  test('curl negotiates HTTP/2 and HTTP/1.1 by ALPN', async () => {
    for (const [flag, version] of [
      ['--http2', '2'],
      ['--http1.1', '1.1'],
    ] as const) {
      const connect = ['--cacert', join(keys, 'ca.pem'), '--connect-to', `::127.0.0.1:${environment.ports.TLS}`]
      expect(await curl(flag, ...connect, '-o', '/dev/null', '-w', '%{http_version} %{http_code}', 'https://a.secure.test/')).toBe(`${version} 200`)
    }
  })

  test('openssl s_client receives a request for a client certificate and gets no response without one', async () => {
    const request = 'GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'
    const openssl = (...args: string[]) => {
      const child = run(
        'openssl',
        ['s_client', '-connect', `127.0.0.1:${environment.ports.MTLS}`, '-servername', 'localhost', '-CAfile', join(keys, 'ca.pem'), '-ign_eof', ...args],
        { timeout: 60_000 },
      )
      child.child.stdin?.end(request)
      return child.then(
        ({ stdout }) => stdout,
        (error: { stdout: string }) => error.stdout,
      )
    }
    const served = await openssl('-cert', join(keys, 'client.pem'))
    expect(served).toMatch(/Acceptable client certificate CA names\s+CN = behaviour authority/)
    expect(served).toMatch(/HTTP\/1\.1 200 OK/)
    expect(await openssl()).not.toMatch(/HTTP\/1\.1 200/)
  })
})
