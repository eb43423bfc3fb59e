import { fromJson, readsMember, type Program } from '#api/cel/index.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { defineSlot, type SlotHolder } from '../../../request/exchange/slot.ts'
import { variables, type McpVariables } from '../../../request/exchange/variables.ts'
import { setLogField } from '../../../observe/telemetry/access-log/access-log.ts'
import { createRecordQuery } from '../../../observe/telemetry/policy.ts'
import type { Item } from '../target/authorize.ts'
import { isObject } from '../message/json.ts'
import type { Run } from '../run/run.ts'
import { isSuccess, type RpcMessage } from '../message/rpc.ts'
import { gatewayTelemetry } from '../../../observe/telemetry/gateway.ts'

function variablesOf(exchange: Exchange): McpVariables {
  let known = variables.mcp.get(exchange)
  if (known === undefined) variables.mcp.set(exchange, (known = {}))
  return known
}

/** Records the method of a message for logs and expressions. */
export function recordMessage(exchange: Exchange, { method }: RpcMessage): void {
  if (method === undefined) return
  variablesOf(exchange).methodName = method
  setLogField(exchange, 'mcp.method.name', method)
}

/** Records the digest of the client's session id for logs, traces and expressions. The id itself is a credential. */
export function recordSession(exchange: Exchange, logId: string): void {
  variablesOf(exchange).sessionId = logId
  setLogField(exchange, 'mcp.session.id', logId)
}

const admittedItem = defineSlot<Item>('mcp.item')

/** Records the item of an admitted request, for labels of metrics. Denied items are not recorded: clients must not choose labels. */
export function recordAdmitted({ exchange }: Pick<Run, 'exchange'>, item: Item): void {
  admittedItem.set(exchange, item)
}

/** Records the item that a request refers to and its arguments, for expressions and logs. */
export function recordItem({ exchange }: Pick<Run, 'exchange'>, { kind, target, name, arguments: args }: Item): void {
  variablesOf(exchange)[kind] = { target, name, ...(args === undefined ? {} : { arguments: fromJson(args) }) }
  setLogField(exchange, 'mcp.target', target)
  setLogField(exchange, 'mcp.resource.type', kind)
  if (kind === 'tool') setLogField(exchange, 'gen_ai.tool.name', name)
  if (kind === 'prompt') setLogField(exchange, 'gen_ai.prompt.name', name)
  if (kind === 'resource') setLogField(exchange, 'mcp.resource.uri', name)
}

/** Records a call of a tool of the gateway itself. It has no target and no label of metrics. */
export function recordOwnTool({ exchange }: Pick<Run, 'exchange'>, name: string, args: unknown): void {
  variablesOf(exchange).tool = { name, arguments: fromJson(args) }
  setLogField(exchange, 'mcp.resource.type', 'tool')
  setLogField(exchange, 'gen_ai.tool.name', name)
}

const recordsReadResults = createRecordQuery(readsResult)

/** Whether log or trace expressions read results of tools. Otherwise an unchanged response passes through unread (mcp.md §15). */
export function readsResults(exchange: SlotHolder): boolean {
  return recordsReadResults(gatewayTelemetry.get(exchange))
}

/** Indexed members (`mcp.tool["result"]`) are found by their name only. Reading `mcp` or `mcp.tool` itself includes the result. */
function readsResult({ reads, source }: Program): boolean {
  if (!readsMember({ reads }, 'mcp')) return false
  const isReadEntirely = (member: string): boolean => reads.has(member) && ![...reads].some((read) => read.startsWith(`${member}.`))
  return source.includes('result') || reads.has('*') || isReadEntirely('mcp') || isReadEntirely('mcp.tool')
}

const success = defineSlot<boolean>('mcp.success')

/** Whether the response to the request was a result, and of a tool no error of it. False if it was not received. */
export const hasSucceeded = (exchange: Exchange): boolean => success.get(exchange) === true

/** Records whether the response is a success. */
export const recordOutcome = (exchange: Exchange, isSuccessful: boolean): void => success.set(exchange, isSuccessful)

/** Records the result or error of the response to a request. */
export function recordAnswer(exchange: Exchange, message: RpcMessage): void {
  const { tool } = variablesOf(exchange)
  recordOutcome(exchange, isSuccess(message))
  if (message.error !== undefined) {
    if (tool !== undefined) tool['error'] = message.error
    if (isObject(message.error)) recordError(exchange, Number(message.error['code']), String(message.error['message']))
  } else if (tool !== undefined) tool['result'] = message.result
}

/** Records a JSON-RPC error for logs. Long messages are cut. */
export function recordError(exchange: Exchange, code: number, message: string): void {
  setLogField(exchange, 'mcp.error.code', Number.isFinite(code) ? code : 0)
  setLogField(exchange, 'mcp.error.message', message.slice(0, 500))
}

/** The item of an admitted request. */
export function itemOf(exchange: Exchange): Item | undefined {
  return admittedItem.get(exchange)
}
