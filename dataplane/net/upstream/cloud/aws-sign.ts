import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import type { RequestHead } from '../../../http/message.ts'
import { hostOf, pathOf, portOf, queryOf } from '../../../http/message.ts'

/** An AWS access key, with a session token if it is temporary. */
export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** Credential scope of a signature. */
export interface AwsSigning {
  readonly credentials: AwsCredentials
  readonly region: string
  /** Name in the credential scope, such as `bedrock` or `bedrock-agentcore`. */
  readonly service: string
}

/** Headers that are signed. Proxies may change others. */
const signedHeader = /^(?:content-type|date|x-amz-.*|x-amzn-.*)$/
const written = ['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256'] as const

/**
 * Signs a request with Signature Version 4: writes `authorization`, `x-amz-date`, `x-amz-content-sha256` and, with temporary credentials,
 * `x-amz-security-token` into its headers. The head must be final; `body` are the bytes to be sent.
 */
export async function signAws(
  request: Pick<RequestHead, 'method' | 'target' | 'authority' | 'headers'>,
  body: Buffer,
  { credentials, region, service }: AwsSigning,
  now = new Date(),
): Promise<void> {
  const { headers, authority } = request
  for (const name of written) headers.remove(name)
  const signed: Record<string, string> = { host: authority }
  for (const [name] of headers) if (signedHeader.test(name)) signed[name] = headers.getAll(name).join(',')
  const port = portOf(authority)
  const signer = new SignatureV4({ credentials, region, service, sha256: NodeSha256 })
  const result = await signer.sign(
    {
      method: request.method,
      protocol: 'https:',
      hostname: hostOf(authority),
      ...(port !== undefined && { port }),
      path: pathOf(request.target),
      query: parseQuery(queryOf(request.target)),
      headers: signed,
      body,
    },
    { signingDate: now },
  )
  for (const name of written) {
    const value = result.headers[name]
    if (value !== undefined) headers.set(name, value)
  }
}

function parseQuery(query: string): Record<string, string[]> {
  const values: Record<string, string[]> = {}
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = decode(at === -1 ? pair : pair.slice(0, at))
    ;(values[name] ??= []).push(at === -1 ? '' : decode(pair.slice(at + 1)))
  }
  return values
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The signer's interface to a hash. */
class NodeSha256 {
  readonly #secret: ConstructorParameters<NonNullable<ConstructorParameters<typeof SignatureV4>[0]['sha256']>>[0]
  #hash: Hash | Hmac

  constructor(secret?: ConstructorParameters<NonNullable<ConstructorParameters<typeof SignatureV4>[0]['sha256']>>[0]) {
    this.#secret = secret
    this.#hash = this.#create()
  }

  update(chunk: Uint8Array): void {
    this.#hash.update(chunk)
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }

  reset(): void {
    this.#hash = this.#create()
  }

  #create(): Hash | Hmac {
    if (this.#secret === undefined) return createHash('sha256')
    return createHmac('sha256', typeof this.#secret === 'string' ? this.#secret : Buffer.from(this.#secret as Uint8Array))
  }
}
