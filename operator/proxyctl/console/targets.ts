import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Named } from '#api/management/merge.ts'

/** A request to the management API. */
export interface TargetRequest {
  readonly method: string
  /** With query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal: AbortSignal
}

/** The management port of a data plane. */
export interface Target {
  /** Name of the pod, or the address. */
  readonly name: string
  /** Resolves with the response head. */
  request(request: TargetRequest): Promise<IncomingMessage>
}

/** A response other than 200 that is passed on. */
export class TargetError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const REFRESH_MS = 2000
/** A pod that is slower is left out. */
const RESPONSE_MS = 5000

/** The data planes of a Gateway. The list is read again when it is used, so that deleted pods leave and new pods join. */
export class Targets {
  readonly #list: () => Promise<readonly Target[]>
  readonly #now: () => number
  #known: readonly Target[] = []
  #readAtMs = -Infinity
  #reading: Promise<void> | undefined

  constructor(list: () => Promise<readonly Target[]>, now: () => number = Date.now) {
    this.#list = list
    this.#now = now
  }

  /** All targets. Rejects if there are none. */
  async all(): Promise<readonly Target[]> {
    if (this.#known.length === 0 || this.#now() - this.#readAtMs >= REFRESH_MS)
      await (this.#reading ??= this.#read().finally(() => (this.#reading = undefined)))
    if (this.#known.length === 0) throw new TargetError(503, 'the Gateway has no running pod; proxyctl status names the cause')
    return this.#known
  }

  /** JSON of all targets that respond. Rejects if none does, or with the response if the request is wrong. */
  async json<T>(path: string): Promise<Named<T>[]> {
    const targets = await this.all()
    const results = await Promise.allSettled(targets.map(async (target) => ({ name: target.name, value: await readJson<T>(target, path) })))
    const found = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    if (found.length < targets.length) this.#readAtMs = -Infinity
    const [failed] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as Error] : []))
    if (found.length === 0 && failed !== undefined) throw failed
    return found
  }

  /** The response of the first target that can be reached. */
  async first(request: TargetRequest): Promise<IncomingMessage> {
    let failure: unknown
    for (const target of await this.all()) {
      try {
        return await target.request(request)
      } catch (error) {
        failure = error
        this.#readAtMs = -Infinity
      }
    }
    throw new TargetError(502, failure instanceof Error ? failure.message : String(failure))
  }

  async #read(): Promise<void> {
    const list = await this.#list().catch((error: unknown) => {
      // The pods of the last list may still respond.
      if (this.#known.length === 0) throw error
      return this.#known
    })
    this.#known = list
    this.#readAtMs = this.#now()
  }
}

async function readJson<T>(target: Target, path: string): Promise<T> {
  const response = await target.request({ method: 'GET', path, signal: AbortSignal.timeout(RESPONSE_MS) })
  const body = await text(response)
  const status = response.statusCode ?? 502
  if (status !== 200) throw new TargetError(status, errorOf(body))
  return JSON.parse(body) as T
}

/** Text of an error response. */
function errorOf(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: unknown }
    return typeof error === 'string' ? error : body
  } catch {
    return body.trim()
  }
}
