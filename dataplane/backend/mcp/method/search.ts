import { chargeMcpLimits } from '../../../request/exchange/mcp-limits.ts'
import { BufferBody } from '../../../http/body.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import type { Reply } from '../message/reply.ts'
import { INVALID_PARAMS, resultText, toText, type RpcRequest } from '../message/rpc.ts'
import { recordOwnTool } from '../record/log.ts'
import type { Run } from '../run/run.ts'
import { CALL_TOOL, DESCRIBE_TOOL, SEARCH_TOOLS, searchTools } from '../tools/search-tools.ts'
import { callNamed } from './calls.ts'
import { readTools } from './lists.ts'

const DEFAULT_LIMIT = 10
const MAX_LIMIT = 50
/** Characters of a description in the result of a search. */
const MAX_SUMMARY = 200

/** The list of tools with `toolSearch: Enabled` (mcp.md §4.7). */
export const listSearchTools = ({ id }: RpcRequest): Reply => messageOf(resultText(id, { tools: searchTools }))

const messageOf = (text: string): Reply => ({ kind: 'message', body: new BufferBody(text) })

/** Handles tools/call with `toolSearch: Enabled`. Tools can be called by their own names too. */
export async function callWithSearch(run: Run, request: RpcRequest, text: string): Promise<Reply> {
  const name = request.params?.['name']
  const given = request.params?.['arguments'] ?? {}
  switch (name) {
    case SEARCH_TOOLS:
    case DESCRIBE_TOOL: {
      recordOwnTool(run, name, given)
      await chargeMcpLimits(run.exchange, 'tool')
      const result = await resultOf(() => (name === SEARCH_TOOLS ? search(run, argumentsIn(given)) : describe(run, argumentsIn(given))))
      run.onAnswer?.({ jsonrpc: '2.0', id: request.id, result })
      return messageOf(resultText(request.id, result))
    }
    case CALL_TOOL: {
      const inner = argumentsIn(given)
      const called: RpcRequest = { ...request, params: { ...request.params, name: nameIn(inner), arguments: inner['arguments'] ?? {} } }
      return callNamed(run, called, toText(called), 'tool')
    }
    default:
      return callNamed(run, request, text, 'tool')
  }
}

/** The result of a tool of the gateway. Models correct wrong arguments if they receive the error as a result. */
async function resultOf(work: () => Promise<JsonObject>): Promise<JsonObject> {
  try {
    return { content: [{ type: 'text', text: JSON.stringify(await work()) }] }
  } catch (error) {
    if (!(error instanceof McpFailure) || error.rpc?.code !== INVALID_PARAMS) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  }
}

function argumentsIn(given: unknown): JsonObject {
  if (!isObject(given)) throw invalid('params.arguments must be an object')
  return given
}

function nameIn({ name }: JsonObject): string {
  if (typeof name !== 'string' || name === '') throw invalid('params.arguments.name must be the name of a tool')
  return name
}

const invalid = (message: string): McpFailure => McpFailure.rpc(INVALID_PARAMS, message)

/** Only tools that the client may call are ranked: others cannot change the order either. */
async function search(run: Run, { query, limit = DEFAULT_LIMIT }: JsonObject): Promise<JsonObject> {
  const { toolIndexes } = run.config
  if (typeof query !== 'string') throw invalid('params.arguments.query must be a text')
  if (typeof limit !== 'number' || !(limit >= 1 && limit <= MAX_LIMIT)) throw invalid(`params.arguments.limit must be a number from 1 to ${MAX_LIMIT}`)
  const tools = await readTools(run)
  const ranked = toolIndexes === undefined ? [] : await runWhileConnected(toolIndexes.search(tools, query), run.exchange)
  const found = ranked.slice(0, limit).flatMap((position): JsonObject[] => (tools[position] === undefined ? [] : [tools[position]]))
  return { tools: found.map(summaryOf), matches: ranked.length, total: tools.length }
}

function summaryOf({ name, title, description }: JsonObject): JsonObject {
  const text = typeof description === 'string' ? description : typeof title === 'string' ? title : ''
  return { name, description: text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY).toWellFormed()}...` : text }
}

async function describe(run: Run, given: JsonObject): Promise<JsonObject> {
  const name = nameIn(given)
  const tool = (await readTools(run, name)).find((one) => one['name'] === name)
  if (tool === undefined) throw invalid(`Unknown tool: ${name}`)
  return tool
}
