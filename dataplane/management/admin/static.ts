import type { Context } from 'hono'
import { readFile } from 'node:fs/promises'

/** The console's policy: nothing but its own files; no inline script or style, no frame. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; media-src 'self' data: blob:; " +
  "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Headers of all responses of the admin endpoint. */
export const browserHeaders: readonly (readonly [name: string, value: string])[] = [
  ['content-security-policy', CONTENT_SECURITY_POLICY],
  ['x-frame-options', 'DENY'],
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
]

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  ico: 'image/x-icon',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json; charset=utf-8',
  map: 'application/json; charset=utf-8',
  png: 'image/png',
  svg: 'image/svg+xml',
  wasm: 'application/wasm',
  woff2: 'font/woff2',
}

const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/** Serves the files of the console, which are read when they are requested: a process without an open console holds none. */
export class StaticFiles {
  readonly #directory: URL

  /** `directory` ends with a slash. */
  constructor(directory: URL) {
    this.#directory = directory
  }

  /** `index.html`; undefined if the console is not built. */
  index(c: Context): Promise<Response | undefined> {
    return this.#serve(c, 'index.html', 'no-cache')
  }

  /** A file below `assets/`, whose name holds a hash of its content; undefined if there is none. */
  async asset(c: Context, name: string): Promise<Response | undefined> {
    return /^\w[\w.-]*$/.test(name) ? this.#serve(c, `assets/${name}`, 'public, max-age=31536000, immutable') : undefined
  }

  async #serve(c: Context, path: string, cacheControl: string): Promise<Response | undefined> {
    const accepted = (c.req.header('accept-encoding') ?? '').toLowerCase().split(',')
    const accepts = (coding: string): boolean => accepted.some((each) => each.split(';')[0]?.trim() === coding && !/;\s*q=0(?:\.0*)?\s*$/.test(each))
    const headers = { 'content-type': types[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream', 'cache-control': cacheControl }
    for (const [coding, suffix] of encodings) {
      const compressed = accepts(coding) ? await this.#read(path + suffix) : undefined
      if (compressed !== undefined) return c.body(compressed, 200, { ...headers, 'content-encoding': coding, vary: 'accept-encoding' })
    }
    const plain = await this.#read(path)
    return plain === undefined ? undefined : c.body(plain, 200, { ...headers, vary: 'accept-encoding' })
  }

  async #read(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      return new Uint8Array(await readFile(new URL(path, this.#directory)))
    } catch {
      return undefined
    }
  }
}
