import type { PluginFetch } from '#api/plugin/index.ts'

/** A request of a plugin, as a message. */
export interface FetchCall {
  readonly url: string
  readonly method: string
  readonly headers: readonly string[]
  readonly body: Uint8Array | undefined
}

/** Its response. `headers` are a flat list: name, value. */
export interface FetchResult {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: Uint8Array
}

const hasNoBody = (status: number): boolean => status === 204 || status === 205 || status === 304

/** The `fetch` of a plugin. */
export function createFetch(run: (call: FetchCall) => Promise<FetchResult>): PluginFetch {
  return async (input, init) => {
    const request = new Request(input, init)
    const { signal } = request
    signal.throwIfAborted()
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer())
    const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))
    const {
      status,
      headers,
      body: bytes,
    } = await Promise.race([run({ url: request.url, method: request.method, headers: [...request.headers].flat(), body }), aborted])
    const response = new Headers()
    for (let at = 0; at < headers.length; at += 2) response.append(headers[at] ?? '', headers[at + 1] ?? '')
    return new Response(hasNoBody(status) || request.method === 'HEAD' ? null : (bytes as Uint8Array<ArrayBuffer>), { status, headers: response })
  }
}
