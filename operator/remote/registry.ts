import { createHash } from 'node:crypto'
import { request as requestPlain, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { request as requestTls } from 'node:https'
import { isIP } from 'node:net'
import { createLookup, describeRefusal, UnreachableError } from './address.ts'
import type { RegistryAccess } from './registry-access.ts'

export interface RegistryOptions {
  /** Loopback is for directory mode. There it is also spoken to in plaintext, as container engines do. */
  readonly isLoopbackAllowed: boolean
  /** Milliseconds of silence after which a request fails. Default: 15 s. */
  readonly idleMs?: number
}

const MAX_REDIRECTS = 5
const MAX_TOKEN_BYTES = 64 * 1024
const IDLE_MS = 15_000

/** Errors of a certificate whose CA is not known. */
const UNKNOWN_CA = ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE']

/** A repository of a registry with the OCI distribution API. */
export class Registry {
  readonly #base: URL
  readonly #repository: string
  readonly #access: RegistryAccess
  readonly #options: RegistryOptions
  readonly #signal: AbortSignal
  /** Header that the registry wants. */
  #authorization: string | undefined

  /** @param signal ends all requests */
  constructor(registry: string, repository: string, signal: AbortSignal, { access, ...options }: RegistryOptions & { readonly access: RegistryAccess }) {
    this.#options = options
    this.#access = access
    this.#repository = `${registry}/${repository}`
    this.#signal = signal
    const host = registry === 'docker.io' ? 'registry-1.docker.io' : registry
    const isPlain = options.isLoopbackAllowed && isLoopback(new URL(`http://${host}`).hostname)
    this.#base = new URL(`${isPlain ? 'http' : 'https'}://${host}/v2/${repository}/`)
  }

  /** The content of a manifest or blob, at most `maxBytes`. Rejects with the cause, also if the content does not have the digest. */
  async get(kind: 'manifests' | 'blobs', digest: string, maxBytes: number, accept?: string): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of this.read(kind, digest, maxBytes, accept)) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  /** As `get`, in pieces. What it yielded must not be used if it throws. */
  async *read(kind: 'manifests' | 'blobs', digest: string, maxBytes: number, accept = '*/*'): AsyncGenerator<Buffer, void> {
    const response = await this.#open(new URL(`${kind}/${digest}`, this.#base), { accept })
    const hash = createHash('sha256')
    yield* limited(response, maxBytes, (piece) => hash.update(piece))
    if (`sha256:${hash.digest('hex')}` !== digest) throw new Error(`the content of ${digest} has another digest`)
  }

  async #open(url: URL, headers: OutgoingHttpHeaders): Promise<IncomingMessage> {
    const send = (): Promise<Answer> => this.#send(url, { ...headers, ...(this.#authorization !== undefined && { authorization: this.#authorization }) })
    const { response, origin } = await send()
    // Another host, to which the registry redirects, cannot ask for credentials of the registry.
    if (response.statusCode !== 401 || this.#authorization !== undefined || origin !== url.origin) return this.#accept(response, url)
    response.resume()
    this.#authorization = await this.#answerChallenge(response.headers['www-authenticate'] ?? '')
    return this.#accept((await send()).response, url)
  }

  /** The credentials, or a token, which public registries require of anonymous users too. */
  async #answerChallenge(challenge: string): Promise<string> {
    const credentials = this.#access.authorize(this.#repository)
    if (/^basic /i.test(challenge) && credentials !== undefined) return credentials
    const parameter = (name: string): string | undefined => new RegExp(`[ ,]${name}="([^"]*)"`, 'i').exec(challenge)?.[1]
    const realm = URL.parse(parameter('realm') ?? '')
    if (!/^bearer /i.test(challenge) || realm === null) throw new Error(this.#describeDenial())
    for (const name of ['service', 'scope']) {
      const value = parameter(name)
      if (value !== undefined) realm.searchParams.set(name, value)
    }
    const { response } = await this.#send(realm, { accept: 'application/json', ...(credentials !== undefined && { authorization: credentials }) })
    const pieces: Buffer[] = []
    for await (const piece of limited(this.#accept(response, realm), MAX_TOKEN_BYTES)) pieces.push(piece)
    const { token, access_token: accessToken } = parseObject(Buffer.concat(pieces), 'the token')
    const value = token ?? accessToken
    if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) throw new Error(`${realm.host} returned no token`)
    return `Bearer ${value}`
  }

  #accept(response: IncomingMessage, url: URL): IncomingMessage {
    const { statusCode } = response
    if (statusCode === 200) return response
    response.destroy()
    throw new Error(statusCode === 401 ? this.#describeDenial() : `${url.host} answered ${statusCode}`)
  }

  #describeDenial(): string {
    const hasCredentials = this.#access.authorize(this.#repository) !== undefined
    return `answered 401; ${hasCredentials ? 'the registry does not accept the credentials of the operator' : `the operator has no credentials for ${this.#repository}`}`
  }

  /** Follows redirects: registries send clients to their stores. Token and credentials stay with the registry. */
  async #send(url: URL, headers: OutgoingHttpHeaders): Promise<Answer> {
    let [target, sent] = [url, headers]
    for (let redirects = 0; ; redirects++) {
      const response = await this.#exchange(target, sent)
      const { statusCode = 0 } = response
      const next = statusCode >= 300 && statusCode < 400 ? URL.parse(response.headers.location ?? '', target) : null
      if (next === null) return { response, origin: target.origin }
      response.resume()
      if (redirects === MAX_REDIRECTS) throw new Error(`${url.host} redirects more than ${MAX_REDIRECTS} times`)
      if (next.origin !== target.origin) sent = { ...(headers['accept'] !== undefined && { accept: headers['accept'] }) }
      target = next
    }
  }

  async #exchange(url: URL, headers: OutgoingHttpHeaders): Promise<IncomingMessage> {
    const { isLoopbackAllowed, idleMs = IDLE_MS } = this.#options
    const host = url.hostname.replaceAll(/^\[|\]$/g, '')
    const isTls = url.protocol === 'https:'
    if (!isTls && !(url.protocol === 'http:' && isLoopbackAllowed && isLoopback(url.hostname))) throw new Error(`${url.host} is not reached by https`)
    const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
    const problem = isIP(host) === 0 ? undefined : describeRefusal(host, port, isLoopbackAllowed)
    if (problem !== undefined) throw new Error(problem)
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const options = {
      host,
      port,
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host, 'accept-encoding': 'identity', 'user-agent': 'proxy-operator' },
      lookup: createLookup(port, isLoopbackAllowed),
      signal: this.#signal,
      agent: false,
    }
    const { secureContext } = this.#access
    const request = isTls ? requestTls({ ...options, ...(secureContext && { secureContext }) }) : requestPlain(options)
    request.setTimeout(idleMs, () => request.destroy(new Error(`no answer within ${idleMs} ms`)))
    request.on('error', (error: NodeJS.ErrnoException) =>
      reject(
        UNKNOWN_CA.includes(error.code ?? '')
          ? new UnreachableError(`the CA of the certificate of ${url.host} is not trusted`, { cause: error })
          : UnreachableError.from(error),
      ),
    )
    request.on('response', resolve)
    request.end()
    return promise
  }
}

interface Answer {
  readonly response: IncomingMessage
  /** Origin that it is of, after redirects. */
  readonly origin: string
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)

async function* limited(response: IncomingMessage, maxBytes: number, observe: (piece: Buffer) => void = () => undefined): AsyncGenerator<Buffer, void> {
  let size = 0
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > maxBytes) throw new Error(`an answer is longer than ${maxBytes} bytes`)
    observe(piece)
    yield piece
  }
  if (!response.complete) throw new Error('an answer was cut')
}

/** An object of JSON. Throws an Error without text of it. */
export function parseObject(bytes: Buffer, what: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new Error(`${what} is no JSON object`)
}
