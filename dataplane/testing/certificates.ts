import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** PEM. */
export interface TestCertificate {
  readonly certificate: string
  readonly privateKey: string
}

export interface TestCertificateOptions {
  /** Common name; also the DNS name unless `names` says otherwise. */
  readonly name: string
  /** OpenSSL's form: `DNS:a.example.com`, `IP:127.0.0.1`, `URI:spiffe://…`. */
  readonly names?: readonly string[]
  /** Default: EC P-256, which is quick to make. */
  readonly algorithm?: 'EC' | 'RSA'
  /** Says nothing of its signer's key, so that only the signer's name leads to it. */
  readonly isKeyUnnamed?: boolean
  /** Who signs; undefined: itself. */
  readonly authority?: TestCertificate
}

/** A certificate authority that signs itself. */
export function makeAuthority(name = 'Test CA', algorithm: 'EC' | 'RSA' = 'EC'): TestCertificate {
  return make({ name, algorithm }, 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n')
}

/** A leaf for servers and clients, made with the openssl command. */
export function makeCertificate(options: TestCertificateOptions): TestCertificate {
  const names = options.names ?? [`DNS:${options.name}`]
  return make(
    options,
    `subjectAltName=${names.join(',')}\nextendedKeyUsage=serverAuth,clientAuth\n${options.isKeyUnnamed ? 'authorityKeyIdentifier=none\n' : ''}`,
  )
}

function make({ name, algorithm = 'EC', authority }: TestCertificateOptions, extensions: string): TestCertificate {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
  const openssl = (...options: string[]): void => void execFileSync('openssl', options, { cwd: folder, stdio: 'ignore' })
  try {
    writeFileSync(join(folder, 'extensions'), extensions)
    const key = algorithm === 'RSA' ? ['RSA', '-pkeyopt', 'rsa_keygen_bits:2048'] : ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256']
    openssl('genpkey', '-algorithm', ...key, '-out', 'key')
    openssl('req', '-new', '-key', 'key', '-subj', `/O=Test/CN=${name}`, '-out', 'request')
    if (authority !== undefined) {
      writeFileSync(join(folder, 'ca'), authority.certificate)
      writeFileSync(join(folder, 'ca.key'), authority.privateKey)
    }
    const signer = authority === undefined ? ['-signkey', 'key'] : ['-CA', 'ca', '-CAkey', 'ca.key', '-CAcreateserial']
    openssl('x509', '-req', '-in', 'request', ...signer, '-days', '2', '-extfile', 'extensions', '-out', 'certificate')
    return { certificate: readFileSync(join(folder, 'certificate'), 'utf8'), privateKey: readFileSync(join(folder, 'key'), 'utf8') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
