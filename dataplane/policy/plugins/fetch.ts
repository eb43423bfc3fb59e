import { fetchDestination } from '../../net/callout/http.ts'
import { framingFields } from '../../request/exchange/fields.ts'
import { BodyTooLargeError } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { isFieldValue, isToken } from '../../http/syntax.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import type { PolicyState } from '../state.ts'
import type { FetchCall, FetchResult } from './guest/fetch-messages.ts'
import type { Fields } from './guest/messages.ts'

/** Time until the end of the body of a response. */
const TIMEOUT_MS = 10_000
/** Bytes of a body, of request and response. */
const MAX_BODY_BYTES = 2 * 1024 * 1024
/** Requests of one plugin that run at a time. */
const MAX_RUNNING = 100

interface FetcherOptions {
  /** `host` or `host:port`; undefined: no host is permitted. */
  readonly hosts: readonly string[] | undefined
  readonly destinations: Pick<PolicyState['destinations'], 'forHost'>
  /** Called at the end of each request with the entry of `hosts` and the class of its status, or `failed`. */
  readonly onResult: (host: string, result: string) => void
}

/** Sends requests of one plugin to the hosts that its policy permits. */
export class Fetcher {
  readonly #options: FetcherOptions
  readonly #hosts: ReadonlySet<string>
  #running = 0

  constructor(options: FetcherOptions) {
    this.#options = options
    this.#hosts = new Set(options.hosts)
  }

  /** Redirects are not followed. Rejects with a TypeError for requests that are not permitted or get no response; its message names no address. */
  async run({ url, method, headers, body }: FetchCall): Promise<FetchResult> {
    const { protocol, hostname, port, host, pathname, search, username, password } = new URL(url)
    if (protocol !== 'https:' && protocol !== 'http:') throw new TypeError(`fetch of ${protocol} URLs is not supported; use https: or http:`)
    const isTls = protocol === 'https:'
    const portNumber = port === '' ? (isTls ? 443 : 80) : Number(port)
    const entry = [port === '' ? hostname : undefined, `${hostname}:${portNumber}`].find((name) => name !== undefined && this.#hosts.has(name))
    if (entry === undefined) throw new TypeError(`fetch of ${host} is not permitted: add ${JSON.stringify(host)} to fetch.hosts of the plugin in its policy`)
    if (username !== '' || password !== '') throw new TypeError('fetch: the URL has credentials; set the header authorization instead')
    if (!isToken(method) || method === 'CONNECT') throw new TypeError(`fetch: method ${JSON.stringify(method)} is not supported`)
    if (body !== undefined && body.length > MAX_BODY_BYTES) throw new TypeError(`fetch: the body is longer than ${MAX_BODY_BYTES} bytes`)
    if (this.#running >= MAX_RUNNING) throw new TypeError(`fetch: ${MAX_RUNNING} requests of the plugin run already`)
    this.#running++
    try {
      const callout = { method, target: pathname + search, authority: host, headers: toList(headers), ...(body !== undefined && { body: Buffer.from(body) }) }
      const destination = this.#options.destinations.forHost?.(hostname, portNumber, isTls)
      if (destination === undefined) throw new Error('destinations are not available')
      const response = await fetchDestination(destination, callout, { limitBytes: MAX_BODY_BYTES, timeoutMs: TIMEOUT_MS })
      this.#options.onResult(entry, `${Math.trunc(response.status / 100)}xx`)
      return { status: response.status, headers: response.headers.raw, body: new Uint8Array(response.body) }
    } catch (error) {
      this.#options.onResult(entry, 'failed')
      throw new TypeError(`fetch of ${host} failed: ${describe(error)}`, { cause: error })
    } finally {
      this.#running--
    }
  }
}

/** Framing headers and the host are those of the gateway. */
function toList(fields: Fields): HeaderList {
  const list = new HeaderList()
  for (let at = 0; at < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at]?.toLowerCase(), fields[at + 1]]
    if (name !== 'host' && isToken(name) && isFieldValue(value) && !framingFields.has(name)) list.append(name, value)
  }
  return list
}

function describe(error: unknown): string {
  if (error instanceof BodyTooLargeError) return `the response is longer than ${MAX_BODY_BYTES} bytes`
  if (error instanceof UpstreamError) return error.failure === 'connect-timeout' ? `no response in ${TIMEOUT_MS / 1000} s` : error.failure
  return 'error of the gateway'
}
