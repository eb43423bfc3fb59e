import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { FileListener, Secret } from '#gen/config/types.ts'

/** Reads a text file named in the config file; throws an Error with a message of one line. */
export type ReadText = (path: string) => string

/** Key material of a listener, and problems by field. */
export interface ListenerMaterial {
  readonly secrets: readonly Secret[]
  readonly problems: readonly { readonly field: string; readonly text: string }[]
}

type FileTls = NonNullable<FileListener['tls']>

/** Reads and checks `tls.{cert,key,clientCa}`: each is a path or PEM text. */
export function readListenerMaterial(tls: FileTls, certificateKey: string, clientCaKey: string, read: ReadText): ListenerMaterial {
  const problems: { field: string; text: string }[] = []
  const load = <T>(field: 'cert' | 'key' | 'clientCa', parse: (pem: string) => T, what: string): { pem: string; parsed: T } | undefined => {
    const source = tls[field]
    if (source === undefined) return undefined
    const isInline = source.includes('-----BEGIN ')
    let pem: string
    try {
      pem = isInline ? source : read(source)
    } catch (error) {
      problems.push({ field, text: error instanceof Error ? error.message : String(error) })
      return undefined
    }
    try {
      return { pem, parsed: parse(pem) }
    } catch {
      // OpenSSL's own text may quote the key.
      problems.push({ field, text: `${isInline ? 'the PEM text' : source} is not ${what} in PEM form` })
      return undefined
    }
  }
  const secrets: Secret[] = []
  const certificate = load('cert', (pem) => new X509Certificate(pem), 'a certificate')
  const key = load('key', (pem) => createPrivateKey(pem), 'an unencrypted private key')
  if (tls.cert === undefined) problems.push({ field: '', text: 'cert is missing' })
  if (tls.key === undefined) problems.push({ field: '', text: 'key is missing' })
  if (certificate !== undefined && key !== undefined) {
    if (certificate.parsed.checkPrivateKey(key.parsed)) secrets.push({ key: certificateKey, type: 'tls', certificate: certificate.pem, privateKey: key.pem })
    else problems.push({ field: 'key', text: 'does not belong to the certificate in cert' })
  }
  const clientCa = load('clientCa', (pem) => new X509Certificate(pem), 'a certificate')
  if (clientCa !== undefined) secrets.push({ key: clientCaKey, type: 'ca', certificate: clientCa.pem })
  return { secrets, problems }
}
