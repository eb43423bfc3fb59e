import type { Exchange } from '../../../request/exchange/exchange.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { hooksFor, type RequestHooks } from '../../../request/exchange/plugin-hooks.ts'
import { BodyTooLargeError } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { INTERNAL_ERROR, type RpcMessage } from '../message/rpc.ts'
import { SchemaValidator } from '../schema/validator.ts'
import { mergeUnchanged } from './merge.ts'
import { readTools, viewTools, type ListedTool } from './tools.ts'

export type { ListedTool } from './tools.ts'

/** Longest response of a plugin that becomes the result of a tool. */
const MAX_RESPONSE_BYTES = 1024 * 1024

/** A tool as its server knows it. */
export interface CalledTool {
  readonly server: string
  readonly tool: string
}

/** The arguments after the hooks, or the result of a call that a plugin rejects. */
export type HookedCall = { readonly arguments: unknown } | { readonly result: JsonObject }

/** The hooks of plugins for one request to an MCP backend (mcp.md §4.11). Methods reject with a ProxyError if a plugin failed and is FailClosed. */
export class McpHooks {
  readonly #exchange: Exchange
  readonly #calls: readonly RequestHooks[]
  readonly #lists: readonly RequestHooks[]
  readonly #results: readonly RequestHooks[]

  private constructor(exchange: Exchange) {
    this.#exchange = exchange
    this.#calls = hooksFor(exchange, 'mcp.call')
    // Lists and results pass the last plugin first, as responses pass middleware.
    this.#lists = hooksFor(exchange, 'mcp.list').toReversed()
    this.#results = hooksFor(exchange, 'mcp.result').toReversed()
  }

  /** Undefined if no plugin has hooks for MCP backends. */
  static of(exchange: Exchange): McpHooks | undefined {
    return hooksFor(exchange, 'mcp.list', 'mcp.call', 'mcp.result').length === 0 ? undefined : new McpHooks(exchange)
  }

  get changesLists(): boolean {
    return this.#lists.length > 0
  }

  get changesResults(): boolean {
    return this.#results.length > 0
  }

  /** The list that the client receives. */
  async list(tools: readonly ListedTool[]): Promise<readonly ListedTool[]> {
    let current = tools
    for (const plugin of this.#lists) {
      const before = current
      const outcome = await plugin.run('mcp.list', await this.#work(viewTools(before)), (output) => this.#work(readTools(before, output)))
      if (outcome !== undefined && 'value' in outcome) current = outcome.value
    }
    this.#traceRemoved(tools, current)
    return current
  }

  #traceRemoved(tools: readonly ListedTool[], shown: readonly ListedTool[]): void {
    const { trace } = this.#exchange
    if (trace === undefined || shown.length === tools.length) return
    const names = new Set(shown.map(({ server, tool }) => `${server} ${String(tool['name'])}`))
    for (const { server, tool } of tools) {
      const name = String(tool['name'])
      if (!names.has(`${server} ${name}`)) trace.addHidden({ kind: 'tool', target: server, name }, 'a plugin removed it')
    }
  }

  /** The arguments that the server receives. */
  async call(called: CalledTool, given: unknown): Promise<HookedCall> {
    let current = given
    for (const plugin of this.#calls) {
      const before = current
      const view = { ...called, ...(before !== undefined && { arguments: before }) }
      const outcome = await plugin.run('mcp.call', view, async (output) => {
        const { arguments: args } = objectIn(output)
        if (args !== undefined && !isObject(args)) throw new TypeError('arguments must be an object')
        return args && this.#work(mergeUnchanged(before, args))
      })
      if (outcome === undefined) continue
      if ('response' in outcome) return { result: await this.#errorResult(outcome.response) }
      current = outcome.value
    }
    return { arguments: current }
  }

  /**
   * The result that the client receives. Errors, tasks and requests for input pass.
   * @param readSchema reads the output schema of the tool, as its server has it; undefined: it has none
   */
  async result(called: CalledTool, message: RpcMessage, readSchema: () => Promise<JsonObject | undefined>): Promise<RpcMessage> {
    let current = message
    for (const plugin of this.#results) {
      const before = current.result
      if (current.error !== undefined || !isObject(before) || (before['resultType'] ?? 'complete') !== 'complete' || isObject(before['task'])) return current
      const { content = [], structuredContent, isError } = before
      const outcome = await plugin.run('mcp.result', { ...called, content, structuredContent, isError }, (output) =>
        this.#readResult(before, output, readSchema),
      )
      if (outcome === undefined) continue
      if ('response' in outcome) {
        const { resultType } = before
        return { ...current, result: { ...(await this.#errorResult(outcome.response)), ...(resultType !== undefined && { resultType }) } }
      }
      current = { ...current, result: outcome.value }
    }
    return current
  }

  async #readResult(before: JsonObject, output: unknown, readSchema: () => Promise<JsonObject | undefined>): Promise<JsonObject> {
    const { content, structuredContent, isError } = objectIn(output)
    if (!Array.isArray(content) || !content.every((block) => isObject(block) && typeof block['type'] === 'string'))
      throw new TypeError('content must be a list of objects with a type')
    if (isError !== undefined && typeof isError !== 'boolean') throw new TypeError('isError must be a boolean')
    const { content: _, structuredContent: __, isError: ___, ...rest } = before
    const structured = structuredContent === undefined ? undefined : await this.#work(mergeUnchanged(before['structuredContent'], structuredContent))
    const isChanged = structured !== before['structuredContent'] || before['isError'] === true
    if (isError !== true && isChanged) await this.#checkStructured(structured, readSchema)
    return {
      ...rest,
      content: before['content'] === undefined && content.length === 0 ? undefined : await this.#work(mergeUnchanged(before['content'], content)),
      ...(structured !== undefined && { structuredContent: structured }),
      ...(isError !== undefined && { isError }),
    }
  }

  /** Clients reject a result that does not match the output schema of its tool. */
  async #checkStructured(structured: unknown, readSchema: () => Promise<JsonObject | undefined>): Promise<void> {
    const schema = await readSchema()
    if (schema === undefined) return
    if (structured === undefined) throw new TypeError('structuredContent is missing: the tool has an output schema')
    const problem = await this.#work(new SchemaValidator(schema).check(structured, 'structuredContent'))
    if (problem !== undefined) throw new TypeError(`the result does not match the output schema of the tool: ${problem}`)
  }

  /** The response of a plugin as the result of a tool that failed. Models read its text. */
  async #errorResult({ body }: ResponseHead): Promise<JsonObject> {
    try {
      const text = (await readHeldBody(this.#exchange, body, MAX_RESPONSE_BYTES)).bytes.toString()
      return { content: [{ type: 'text', text }], isError: true }
    } catch (error) {
      if (!(error instanceof BodyTooLargeError)) throw error
      throw McpFailure.rpc(INTERNAL_ERROR, `the response of a plugin has more than ${MAX_RESPONSE_BYTES} bytes`)
    }
  }

  #work<Result>(work: Cooperative<Result>): Promise<Result> {
    return runWhileConnected(work, this.#exchange)
  }
}

function objectIn(output: unknown): JsonObject {
  if (!isObject(output)) throw new TypeError('it is no object')
  return output
}
