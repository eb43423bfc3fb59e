import type { MockRequest } from '../../../harness/llm/server.ts'
import type { Json, Reply, View } from './script.ts'

/** A rule of the vendor that a request breaks. The gateway, or the client itself, has sent what the vendor rejects. */
export class Violation extends Error {
  readonly status: number
  constructor(message: string, status = 400) {
    super(message)
    this.status = status
  }
}

/** Throws if a rule is broken. */
export function demand(isKept: boolean, message: string): asserts isKept {
  if (!isKept) throw new Violation(message)
}

/** What a mock is asked. */
export interface Asked {
  readonly request: MockRequest
  readonly path: string
  readonly query: URLSearchParams
  readonly body: Json
}

/** One API of a vendor: its rules, and its forms of requests, responses and errors. */
export interface Api {
  /** The path, of which the first group is the model, or nothing. */
  readonly path: RegExp
  /** Checks of schemas.py. */
  schema?(asked: Asked): { readonly kind: string; readonly body: Json } | undefined
  /** Throws a Violation for what the schema does not say. */
  check(asked: Asked): void
  read(asked: Asked): View
  /** A response in one piece. */
  write(reply: Reply, asked: Asked): Json
  /** The events of a stream. */
  events(reply: Reply, asked: Asked): Buffer[]
  /** An event of an endless stream. */
  endless(asked: Asked): { readonly first: readonly Buffer[]; readonly next: Buffer }
  readonly contentType: string
}

export interface Vendor {
  readonly name: string
  readonly model: string
  /** Throws a Violation if the credential is not the one of the gateway. */
  authenticate(request: MockRequest): void
  readonly apis: readonly Api[]
  error(status: number, message: string): { readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
}

export const usageOf = ({ text, calls, thinking }: Reply): { input: number; output: number } => ({
  input: 20,
  output: text.length + calls.length * 10 + (thinking?.length ?? 0),
})

export const KEY = 'key-of-the-provider'

/** Credentials in a header. */
export function demandHeader({ headers }: MockRequest, name: string, value: string): void {
  if (headers[name] !== value) throw new Violation(`invalid credential in ${name}: ${headers[name] ?? 'none'}`, 401)
}
