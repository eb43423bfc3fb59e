/** A case of h2spec that fails. */
export interface KnownFailure {
  /** `<package>: <title>`, as in the report of h2spec. */
  readonly name: string
  /** Transport on which it fails; undefined: both. */
  readonly only?: 'plaintext' | 'TLS'
  /** Why it fails, and why that is acceptable. */
  readonly reason: string
}

/** The cases that fail. */
export const knownFailures: readonly KnownFailure[] = [
  {
    name: 'http2/3.5: Sends invalid connection preface',
    only: 'plaintext',
    reason: 'the port serves HTTP/1.1 too: bytes that are not the preface of HTTP/2 get a 400 of HTTP/1.1 before the connection is closed',
  },
]
