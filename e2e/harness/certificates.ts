import { createHash, generateKeyPairSync, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate with its key, PEM. */
export interface Certificate {
  readonly name: string
  readonly certificate: string
  readonly privateKey: string
  readonly key: KeyObject
}

export interface CertificateOptions {
  /** Common name of the subject. */
  readonly name: string
  /** DNS names and IP addresses; default: the name. */
  readonly hosts?: readonly string[]
  /** Who signs; absent: the certificate signs itself. */
  readonly issuer?: Certificate
  readonly isAuthority?: boolean
  readonly validDays?: number
}

/** Makes a P-256 certificate (RFC 5280), good for servers and clients. */
export function makeCertificate(options: CertificateOptions): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const issuerName = options.issuer?.name ?? options.name
  const signer = options.issuer?.key ?? privateKey
  const issuerSpki = options.issuer === undefined ? spki : new X509Certificate(options.issuer.certificate).publicKey.export({ type: 'spki', format: 'der' })
  const start = Date.now() - 3_600_000
  const tbs = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    SIGNATURE_ALGORITHM,
    nameOf(issuerName),
    sequence(utcTime(new Date(start)), utcTime(new Date(start + (options.validDays ?? 365) * 86_400_000))),
    nameOf(options.name),
    spki,
    tagged(0xa3, sequence(...extensions(options, spki, issuerSpki))),
  )
  const der = sequence(tbs, SIGNATURE_ALGORITHM, tagged(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', tbs, signer)])))
  return {
    name: options.name,
    certificate: toPem('CERTIFICATE', der),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    key: privateKey,
  }
}

export function makeAuthority(name: string): Certificate {
  return makeCertificate({ name, isAuthority: true })
}

function extensions(options: CertificateOptions, spki: Buffer, issuerSpki: Buffer): Buffer[] {
  const list = [extension('2.5.29.14', false, tagged(0x04, keyId(spki))), extension('2.5.29.35', false, sequence(tagged(0x80, keyId(issuerSpki))))]
  if (options.isAuthority) {
    list.push(extension('2.5.29.19', true, sequence(TRUE)))
    // keyCertSign, cRLSign
    list.push(extension('2.5.29.15', true, tagged(0x03, Buffer.from([1, 0x06]))))
    return list
  }
  const hosts = (options.hosts ?? [options.name]).map((host) =>
    isIP(host) === 4 ? tagged(0x87, Buffer.from(host.split('.').map(Number))) : tagged(0x82, Buffer.from(host)),
  )
  list.push(extension('2.5.29.17', false, sequence(...hosts)))
  list.push(extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'), oid('1.3.6.1.5.5.7.3.2'))))
  return list
}

// DER (X.690), as far as a certificate needs it.
function tagged(tag: number, content: Buffer): Buffer {
  const length = content.length < 0x80 ? [content.length] : content.length < 0x100 ? [0x81, content.length] : [0x82, content.length >> 8, content.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

function sequence(...items: Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(items))
}

function integer(value: Buffer): Buffer {
  return tagged(0x02, value)
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const part of rest) {
    const groups = [part & 0x7f]
    for (let left = part >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80)
    bytes.push(...groups)
  }
  return tagged(0x06, Buffer.from(bytes))
}

function nameOf(commonName: string): Buffer {
  return sequence(tagged(0x31, sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from(commonName)))))
}

function utcTime(date: Date): Buffer {
  return tagged(0x17, Buffer.from(`${date.toISOString().replaceAll(/[-:T]/g, '').slice(2, 14)}Z`))
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(isCritical ? [TRUE] : []), tagged(0x04, value))
}

function keyId(spki: Buffer): Buffer {
  return createHash('sha1').update(spki).digest()
}

function toPem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}

const TRUE = tagged(0x01, Buffer.from([0xff]))
// ecdsa-with-SHA256
const SIGNATURE_ALGORITHM = sequence(oid('1.2.840.10045.4.3.2'))
