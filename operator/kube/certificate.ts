import { X509Certificate, createPrivateKey } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { ServerCredentials } from '@grpc/grpc-js'
import type { Clock } from '../serve/debounce.ts'
import { ApiError, type KubeConnection } from './connection.ts'
import type { RawObject } from './normalize.ts'
import { watchCollection } from './watch.ts'

/** Secret with the certificate of the config stream (operator.md §6.3). */
const XDS_CERTIFICATE = 'proxy-xds-cert'

/** Serving certificate of the config stream. `authority` is the PEM that data planes must trust. */
export interface ServingCertificate {
  readonly certificate: Buffer
  readonly key: Buffer
  readonly authority: Buffer
}

/** Reads a Secret's data. Throws with the missing or invalid entry; no message contains key material. */
export function readCertificate(data: Readonly<Record<string, string>> | undefined): ServingCertificate {
  const part = (entry: string): Buffer => {
    const text = data?.[entry]
    if (text === undefined || text === '') throw new Error(`Secret ${XDS_CERTIFICATE}: ${entry} is missing; it needs tls.crt, tls.key and ca.crt`)
    return Buffer.from(text, 'base64')
  }
  const read = { certificate: part('tls.crt'), key: part('tls.key'), authority: part('ca.crt') }
  const check = (entry: string, parse: () => unknown): void => {
    try {
      parse()
    } catch {
      throw new Error(`Secret ${XDS_CERTIFICATE}: ${entry} is not PEM that can be read`)
    }
  }
  check('tls.crt', () => new X509Certificate(read.certificate))
  check('ca.crt', () => new X509Certificate(read.authority))
  check('tls.key', () => createPrivateKey(read.key))
  if (!new X509Certificate(read.certificate).checkPrivateKey(createPrivateKey(read.key)))
    throw new Error(`Secret ${XDS_CERTIFICATE}: tls.key is not the key of tls.crt`)
  createSecureContext(contextOf(read))
  return read
}

const contextOf = ({ certificate, key }: ServingCertificate): SecureContextOptions => ({ cert: certificate, key, minVersion: 'TLSv1.2' })

/** Credentials whose certificate can be changed while the server runs: the next handshake has the new one. */
class ReloadableCredentials extends ServerCredentials {
  constructor(certificate: ServingCertificate) {
    super({}, contextOf(certificate))
  }

  reload(certificate: ServingCertificate): void {
    this.updateSecureContextOptions(contextOf(certificate))
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other
  }
}

export interface CertificateSource {
  readonly credentials: ReloadableCredentials
  current(): ServingCertificate
  close(): void
}

/**
 * Reads the certificate and follows its changes. Rejects if there is none: data planes must not fall back to plaintext.
 * A broken later one is reported, and the last good one stays.
 */
export async function watchCertificate(
  connection: KubeConnection,
  namespace: string,
  { clock, onChange, onError }: { readonly clock: Clock; readonly onChange: () => void; readonly onError: (error: unknown) => void },
): Promise<CertificateSource> {
  const collection = `/api/v1/namespaces/${namespace}/secrets`
  const { data } = await connection.request<SecretData>('GET', `${collection}/${XDS_CERTIFICATE}`).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    throw new Error(
      `TLS of the config stream: namespace ${namespace} has no Secret ${XDS_CERTIFICATE}; make it (type kubernetes.io/tls: tls.crt, tls.key and ca.crt), or set controller.xds.tls.enabled to false`,
    )
  })
  let current = readCertificate(data)
  const credentials = new ReloadableCredentials(current)
  const take = (raw: RawObject & SecretData): void => {
    try {
      const next = readCertificate(raw.data)
      if (next.certificate.equals(current.certificate) && next.key.equals(current.key) && next.authority.equals(current.authority)) return
      current = next
      credentials.reload(next)
      onChange()
    } catch (error) {
      onError(error)
    }
  }
  const watch = watchCollection({
    connection,
    clock,
    paths: [collection],
    query: { fieldSelector: `metadata.name=${XDS_CERTIFICATE}` },
    onList: (items) => items.forEach(take),
    onUpsert: take,
    onDelete: () => onError(new Error(`Secret ${XDS_CERTIFICATE} was deleted; the last certificate stays in use`)),
    onError,
  })
  return { credentials, current: () => current, close: () => watch.close() }
}

interface SecretData {
  readonly data?: Readonly<Record<string, string>>
}
