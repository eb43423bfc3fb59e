import type { JsonObject } from './json.ts'

/** A failed MCP request. Thrown within `mcp` and converted to a response in `answer/answer.ts` only (mcp.md §3.2). */
export class McpFailure extends Error {
  readonly status: number
  /** Set if the response is a JSON-RPC error with the id of the client's request; otherwise it is plain text. */
  readonly rpc: { readonly code: number; readonly data?: unknown } | undefined
  /** Value of the Allow header of a 405. */
  readonly allowed: string | undefined
  /** What logs have in place of the message: with names and addresses of upstreams, which clients must not learn. */
  readonly detail: string

  private constructor(
    status: number,
    message: string,
    { rpc, cause, allowed, detail = message }: { rpc?: McpFailure['rpc']; cause?: unknown; allowed?: string; detail?: string | undefined } = {},
  ) {
    super(message, { cause })
    this.detail = detail
    this.name = 'McpFailure'
    this.status = status
    this.rpc = rpc
    this.allowed = allowed
  }

  /** A plain-text response: the HTTP request is wrong, not the message in it. */
  static text(status: number, message: string): McpFailure {
    return new McpFailure(status, message)
  }

  /** A 405: the method is not one of `allowed`, the value of the Allow header. */
  static method(allowed: string, message = 'method not allowed'): McpFailure {
    return new McpFailure(405, message, { allowed })
  }

  /**
   * A JSON-RPC error. Status 200 for errors of the message, so that SDK clients see the code (decision D3); 500 if the
   * upstream could not be reached. `detail` is the text for logs, by default the message.
   */
  static rpc(
    code: number,
    message: string,
    { status = 200, data, cause, detail }: { status?: number; data?: unknown; cause?: unknown; detail?: string } = {},
  ): McpFailure {
    return new McpFailure(status, message, { rpc: { code, ...(data === undefined ? {} : { data }) }, cause, detail })
  }
}

/** The client cancelled the request: it receives no response. */
export class CancelledError extends Error {}

/** With FailOpen, requests are accepted although no target is available (mcp.md §2). */
export const noTargets = (): McpFailure => McpFailure.rpc(-32603, 'no upstreams available')

/** A JSON-RPC error of a target, which the client receives unchanged. */
export class UpstreamRpcError extends Error {
  readonly rpc: JsonObject
  constructor(message: JsonObject) {
    super('the upstream answered with an error')
    this.rpc = message
  }
}
