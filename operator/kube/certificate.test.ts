import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { connect as connectTls } from 'node:tls'
import { systemClock } from '../serve/debounce.ts'
import { createConfigServer } from '../serve/server.ts'
import { readCertificate, watchCertificate, type CertificateSource } from './certificate.ts'
import { collections, startFakeApi, type FakeApi } from './testing.ts'
import { makeCertificate } from '../../e2e/harness/certificates.ts'
import { until } from '../../e2e/harness/wait.ts'

const { secrets } = collections

/** Data of a Secret with a self-signed certificate. */
function makeData(commonName: string): Record<string, string> {
  const { certificate, privateKey } = makeCertificate({ name: commonName, hosts: ['localhost'] })
  const text = Buffer.from(certificate).toString('base64')
  return { 'tls.crt': text, 'tls.key': Buffer.from(privateKey).toString('base64'), 'ca.crt': text }
}
const one = makeData('one')
const two = makeData('two')
const garbage = Buffer.from('no PEM').toString('base64')

describe('a Secret is rejected:', () => {
  test.each<[string, Record<string, string> | undefined, string]>([
    ['a missing Secret', undefined, 'tls.crt is missing; it needs tls.crt, tls.key and ca.crt'],
    ['no key', { 'tls.crt': one['tls.crt'] ?? '', 'ca.crt': one['ca.crt'] ?? '' }, 'tls.key is missing'],
    ['no authority', { 'tls.crt': one['tls.crt'] ?? '', 'tls.key': one['tls.key'] ?? '' }, 'ca.crt is missing'],
    ['an invalid certificate', { ...one, 'tls.crt': garbage }, 'tls.crt is not PEM that can be read'],
    ['an invalid key', { ...one, 'tls.key': garbage }, 'tls.key is not PEM that can be read'],
    ['an invalid authority', { ...one, 'ca.crt': garbage }, 'ca.crt is not PEM that can be read'],
    ['the key of another certificate', { ...one, 'tls.key': two['tls.key'] ?? '' }, 'tls.key is not the key of tls.crt'],
  ])('%s', (_, data, message) => {
    expect(() => readCertificate(data)).toThrow(message)
  })
})

describe('while the server runs', () => {
  let api: FakeApi
  let source: CertificateSource
  const errors: string[] = []
  let changes = 0

  beforeEach(async () => {
    api = await startFakeApi({ install: [secrets] })
    put(one)
    changes = 0
    errors.length = 0
    source = await watchCertificate(api.connection, 'proxy-system', {
      clock: systemClock,
      onChange: () => (changes += 1),
      onError: (error) => errors.push(String(error)),
    })
  })
  afterEach(async () => {
    source.close()
    await api.close()
  })
  const put = (data: Record<string, string>): void => void api.put(secrets, { metadata: { name: 'proxy-xds-cert', namespace: 'proxy-system' }, data })
  const nameAt = (port: number): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'] }, () => {
        const { subject } = socket.getPeerCertificate()
        socket.destroy()
        resolve(String(subject.CN))
      })
      socket.on('error', reject)
    })
  test('the next handshake uses a new certificate, and an invalid one is reported and not used', async () => {
    const server = createConfigServer({ isOpen: true, credentials: source.credentials })
    const port = await server.listen('127.0.0.1:0')
    try {
      expect(await nameAt(port)).toBe('one')
      put(two)
      await until(() => changes === 1)
      expect(await nameAt(port)).toBe('two')
      expect(source.current().authority.toString('base64')).toBe(two['ca.crt'])
      put({ ...one, 'tls.key': garbage })
      await until(() => errors.length === 1)
      expect(errors).toEqual(['Error: Secret proxy-xds-cert: tls.key is not PEM that can be read'])
      api.drop(secrets, 'proxy-system', 'proxy-xds-cert')
      await until(() => errors.length === 2)
      expect(await nameAt(port)).toBe('two')
    } finally {
      await server.close()
    }
  })

  test('the server does not start without the Secret, and the error names it', async () => {
    api.drop(secrets, 'proxy-system', 'proxy-xds-cert')
    await expect(watchCertificate(api.connection, 'proxy-system', { clock: systemClock, onChange: () => {}, onError: () => {} })).rejects.toThrow(
      'namespace proxy-system has no Secret proxy-xds-cert; make it (type kubernetes.io/tls: tls.crt, tls.key and ca.crt)',
    )
  })
})
