import { createHash, generateKeyPairSync, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate with its key, PEM. */
export interface Certificate {
  readonly name: string
  readonly certificate: string
  readonly privateKey: string
  readonly key: KeyObject
  /** Organization of the subject. */
  readonly organization?: string | undefined
}

export interface CertificateOptions {
  /** Common name of the subject. */
  readonly name: string
  readonly organization?: string | undefined
  /** DNS names and IP addresses of the subject alternative name; default: the common name. */
  readonly hosts?: readonly string[]
  /** URIs of the subject alternative name. */
  readonly uris?: readonly string[]
  /** Default: the certificate is self-signed. */
  readonly issuer?: Certificate | undefined
  readonly isAuthority?: boolean
  readonly validDays?: number
  /** Default: EC, on the curve P-256. */
  readonly algorithm?: 'EC' | 'RSA' | undefined
  /** Omits the authority key identifier, so that the issuer is found by its name only. */
  readonly omitsIssuerKeyId?: boolean | undefined
}

/** Makes a certificate (RFC 5280) for server and client authentication, without another program. */
export function makeCertificate(options: CertificateOptions): Certificate {
  const { publicKey, privateKey } =
    options.algorithm === 'RSA' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const issuer = options.issuer ?? options
  const signer = options.issuer?.key ?? privateKey
  const algorithm = signer.asymmetricKeyType === 'rsa' ? SHA256_WITH_RSA : ECDSA_WITH_SHA256
  const issuerSpki = options.issuer === undefined ? spki : new X509Certificate(options.issuer.certificate).publicKey.export({ type: 'spki', format: 'der' })
  const start = Date.now() - 3_600_000
  const tbs = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    subjectName(issuer),
    sequence(utcTime(new Date(start)), utcTime(new Date(start + (options.validDays ?? 365) * 86_400_000))),
    subjectName(options),
    spki,
    tagged(0xa3, sequence(...extensions(options, spki, issuerSpki))),
  )
  const der = sequence(tbs, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', tbs, signer)])))
  return {
    name: options.name,
    organization: options.organization,
    certificate: toPem('CERTIFICATE', der),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    key: privateKey,
  }
}

/** A certificate authority with a self-signed certificate. */
export function makeAuthority(name: string): Certificate {
  return makeCertificate({ name, isAuthority: true })
}

function extensions(options: CertificateOptions, spki: Buffer, issuerSpki: Buffer): Buffer[] {
  const list = [extension('2.5.29.14', false, tagged(0x04, keyId(spki)))]
  if (!options.omitsIssuerKeyId) list.push(extension('2.5.29.35', false, sequence(tagged(0x80, keyId(issuerSpki)))))
  if (options.isAuthority) {
    list.push(extension('2.5.29.19', true, sequence(TRUE)))
    // keyCertSign, cRLSign
    list.push(extension('2.5.29.15', true, tagged(0x03, Buffer.from([1, 0x06]))))
    return list
  }
  const hosts = (options.hosts ?? [options.name]).map((host) => (isIP(host) === 0 ? tagged(0x82, Buffer.from(host)) : tagged(0x87, addressBytes(host))))
  const uris = (options.uris ?? []).map((uri) => tagged(0x86, Buffer.from(uri)))
  list.push(extension('2.5.29.17', false, sequence(...hosts, ...uris)))
  list.push(extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'), oid('1.3.6.1.5.5.7.3.2'))))
  return list
}

// The subset of DER (X.690) that a certificate needs.
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

function subjectName({ name, organization }: Pick<CertificateOptions, 'name' | 'organization'>): Buffer {
  const attribute = (type: string, value: string): Buffer => tagged(0x31, sequence(oid(type), tagged(0x0c, Buffer.from(value))))
  return sequence(...(organization === undefined ? [] : [attribute('2.5.4.10', organization)]), attribute('2.5.4.3', name))
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
const ECDSA_WITH_SHA256 = sequence(oid('1.2.840.10045.4.3.2'))
const SHA256_WITH_RSA = sequence(oid('1.2.840.113549.1.1.11'), tagged(0x05, Buffer.alloc(0)))

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  // The parser of URLs writes IPv4-mapped addresses as groups of digits, too.
  const [before = '', after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groupsOf = (text = ''): number[] => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [first, last] = [groupsOf(before), groupsOf(after)]
  const groups = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 255]))
}
