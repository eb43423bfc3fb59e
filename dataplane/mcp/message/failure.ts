import type { JsonObject } from './json.ts'

/** Why an MCP request has no other answer: thrown inside this room, made a response in `answer.ts` and nowhere else (mcp.md §3.2). */
export class McpFailure extends Error {
  readonly status: number
  /** Set: the answer is a JSON-RPC error, for the request that the client sent; else plain text. */
  readonly rpc: { readonly code: number; readonly data?: unknown } | undefined
  /** Value of Allow, with a 405. */
  readonly allowed: string | undefined

  private constructor(status: number, message: string, { rpc, cause, allowed }: { rpc?: McpFailure['rpc']; cause?: unknown; allowed?: string } = {}) {
    super(message, { cause })
    this.name = 'McpFailure'
    this.status = status
    this.rpc = rpc
    this.allowed = allowed
  }

  /** About the HTTP request rather than the message in it. */
  static text(status: number, message: string): McpFailure {
    return new McpFailure(status, message)
  }

  /** The method is none of `allowed`. */
  static method(allowed: string, message = 'method not allowed'): McpFailure {
    return new McpFailure(405, message, { allowed })
  }

  /**
   * A JSON-RPC error. Status 200 for what is wrong with the message, so that SDK clients see its code (decision D3); 500 when the
   * upstream could not be reached.
   */
  static rpc(code: number, message: string, { status = 200, data, cause }: { status?: number; data?: unknown; cause?: unknown } = {}): McpFailure {
    return new McpFailure(status, message, { rpc: { code, ...(data === undefined ? {} : { data }) }, cause })
  }
}

/** FailOpen lets requests in, and nobody is there to answer (mcp.md §2). */
export const noTargets = (): McpFailure => McpFailure.rpc(-32603, 'no upstreams available')

/** A JSON-RPC error of a target, for the client as it is. */
export class UpstreamRpcError extends Error {
  readonly rpc: JsonObject
  constructor(message: JsonObject) {
    super('the upstream answered with an error')
    this.rpc = message
  }
}
