import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { Secret as SecretMessage } from '#gen/config/types.ts'
import type { ConfigMap, Secret } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'

/** Key material as a message, or why it cannot be used. */
export type Material = { readonly message: SecretMessage; readonly error?: undefined } | { readonly error: string; readonly message?: undefined }

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
const decode = (base64: string): string => Buffer.from(base64, 'base64').toString('utf8')

/** Parsing PEM is the dearest thing that translation does, so it happens once per object. */
function once<Source extends object>(read: (source: Source) => Material): (source: Source) => Material {
  const known = new WeakMap<Source, Material>()
  return (source) => {
    let material = known.get(source)
    if (!material) known.set(source, (material = read(source)))
    return material
  }
}

/** A certificate with its key: entries tls.crt and tls.key. */
export const readCertificate = once((secret: Secret): Material => {
  const certificate = decode(secret.data?.['tls.crt'] ?? '')
  const privateKey = decode(secret.data?.['tls.key'] ?? '')
  const name = `Secret ${keyOf(secret)}`
  for (const [entry, text] of [
    ['tls.crt', certificate],
    ['tls.key', privateKey],
  ] as const) {
    if (text.trim() === '') return { error: `${name} has no ${entry}` }
  }
  try {
    const leaf = new X509Certificate(certificate)
    for (const block of certificate.match(PEM_CERTIFICATE) ?? []) new X509Certificate(block)
    if (!leaf.checkPrivateKey(createPrivateKey(privateKey))) return { error: `tls.key of ${name} does not belong to the first certificate of tls.crt` }
  } catch {
    return { error: `tls.crt and tls.key of ${name} are not a PEM certificate chain and its key` }
  }
  // Data planes pass both to OpenSSL, which rejects weak keys: a listener that cannot serve must not be reported as ready.
  try {
    createSecureContext({ cert: certificate, key: privateKey })
  } catch (error) {
    const reason = String(error).replace(/^.*::?\s*/, '')
    return { error: `tls.crt and tls.key of ${name} cannot serve TLS: ${reason}; use RSA of at least 2048 bits, or ECDSA` }
  }
  return { message: { key: `tls/${keyOf(secret)}`, type: 'tls', certificate, privateKey } }
})

function readAuthority(key: string, name: string, entry: string, text: string | undefined): Material {
  if (text === undefined || text.trim() === '') return { error: `${name} has no ${entry}` }
  const blocks = text.match(PEM_CERTIFICATE) ?? []
  try {
    for (const block of blocks) new X509Certificate(block)
  } catch {
    return { error: `${entry} of ${name} holds a certificate that does not parse` }
  }
  if (blocks.length === 0) return { error: `${entry} of ${name} holds no PEM certificate` }
  return { message: { key, type: 'ca', certificate: text } }
}

/** Trust anchors of a ConfigMap: entry ca.crt. */
export const readConfigMapAuthority = once((map: ConfigMap): Material =>
  readAuthority(`ca/configmap/${keyOf(map)}`, `ConfigMap ${keyOf(map)}`, 'ca.crt', map.data?.['ca.crt']),
)

const readAuthorityEntry = (entry: 'ca.crt' | 'ca.cert'): ((secret: Secret) => Material) =>
  once((secret) => {
    const text = secret.data?.[entry]
    return readAuthority(`ca/secret/${keyOf(secret)}/${entry}`, `Secret ${keyOf(secret)}`, entry, text === undefined ? undefined : decode(text))
  })
const authorityReaders = { 'ca.crt': readAuthorityEntry('ca.crt'), 'ca.cert': readAuthorityEntry('ca.cert') }

/** Trust anchors of a Secret: entry ca.crt for clients (Gateway API), ca.cert for backends (part 2). */
export function readSecretAuthority(secret: Secret, entry: 'ca.crt' | 'ca.cert'): Material {
  return authorityReaders[entry](secret)
}

/** All entries of a Secret. */
export const readOpaque = once((secret: Secret): Material => {
  const data = Object.fromEntries(Object.entries(secret.data ?? {}).map(([entry, value]) => [entry, decode(value)]))
  return { message: { key: `opaque/${keyOf(secret)}`, type: 'opaque', data } }
})
