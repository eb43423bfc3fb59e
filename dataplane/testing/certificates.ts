import { makeCertificate as make, type Certificate } from '../../e2e/harness/certificates.ts'

/** A certificate with its private key, both PEM. */
export type TestCertificate = Certificate

export interface TestCertificateOptions {
  /** Common name; also the DNS name unless `names` is set. */
  readonly name: string
  /** Subject alternative names as OpenSSL writes them: `DNS:a.example.com`, `IP:127.0.0.1`, `URI:spiffe://…`. */
  readonly names?: readonly string[]
  /** Default: EC P-256, which is quick to make. */
  readonly algorithm?: 'EC' | 'RSA'
  /** Leaves the authority key identifier out, so that only the issuer's name leads to the issuer. */
  readonly omitsIssuerKeyId?: boolean
  /** The issuer; undefined: the certificate is self-signed. */
  readonly authority?: TestCertificate
}

const ORGANIZATION = 'Test'

/** A certificate authority with a self-signed certificate. */
export function makeAuthority(name = 'Test CA', algorithm: 'EC' | 'RSA' = 'EC'): TestCertificate {
  return make({ name, organization: ORGANIZATION, algorithm, isAuthority: true })
}

/** A certificate for servers and clients. */
export function makeCertificate({ name, names = [`DNS:${name}`], algorithm, omitsIssuerKeyId, authority }: TestCertificateOptions): TestCertificate {
  const withPrefix = (pattern: RegExp): string[] => names.filter((entry) => pattern.test(entry)).map((entry) => entry.replace(pattern, ''))
  const hosts = withPrefix(/^(?:DNS|IP):/)
  const uris = withPrefix(/^URI:/)
  return make({ name, organization: ORGANIZATION, hosts, uris, algorithm, omitsIssuerKeyId, issuer: authority })
}
