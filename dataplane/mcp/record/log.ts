import { readsMember, type Program } from '#api/cel/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { defineSlot, type SlotHolder } from '../../exchange/slot.ts'
import { variables, type McpVariables } from '../../exchange/variables.ts'
import { setLogField } from '../../telemetry/access-log/access-log.ts'
import { asksRecords } from '../../telemetry/policy.ts'
import type { Item } from '../target/authorize.ts'
import { isObject } from '../message/json.ts'
import type { Run } from '../run/run.ts'
import type { RpcMessage } from '../message/rpc.ts'
import { gatewayTelemetry } from '../../telemetry/gateway.ts'

function variablesOf(exchange: Exchange): McpVariables {
  let known = variables.mcp.get(exchange)
  if (known === undefined) variables.mcp.set(exchange, (known = {}))
  return known
}

export function noteMessage(exchange: Exchange, { method }: RpcMessage): void {
  if (method === undefined) return
  variablesOf(exchange).methodName = method
  setLogField(exchange, 'mcp.method.name', method)
}

export function noteSession(exchange: Exchange, sessionId: string): void {
  variablesOf(exchange).sessionId = sessionId
  setLogField(exchange, 'mcp.session.id', sessionId)
}

const admittedItem = defineSlot<Item>('mcp.item')

/** The item that a request is about, once it was let through: clients must not choose what metrics are labelled by. */
export function noteAdmitted({ exchange }: Pick<Run, 'exchange'>, item: Item): void {
  admittedItem.set(exchange, item)
}

/** The item that a request is about, resolved, and what is asked of it. */
export function noteItem({ exchange }: Pick<Run, 'exchange'>, { kind, target, name, arguments: given }: Item): void {
  variablesOf(exchange)[kind] = { target, name, ...(given === undefined ? {} : { arguments: given }) }
  setLogField(exchange, 'mcp.target', target)
  setLogField(exchange, 'mcp.resource.type', kind)
  if (kind === 'tool') setLogField(exchange, 'gen_ai.tool.name', name)
  if (kind === 'prompt') setLogField(exchange, 'gen_ai.prompt.name', name)
  if (kind === 'resource') setLogField(exchange, 'mcp.resource.uri', name)
}

const recordsReadResults = asksRecords(readsResult)

/** Whether log or trace expressions read what tools gave. Else an answer that nothing changes passes through unread (mcp.md §15). */
export function readsResults(exchange: SlotHolder): boolean {
  return recordsReadResults(gatewayTelemetry.get(exchange))
}

/** Members by index (`mcp.tool["result"]`) are known by their word only; the whole of `mcp` or of `mcp.tool` has everything. */
function readsResult({ reads, source }: Program): boolean {
  if (!readsMember({ reads }, 'mcp')) return false
  const isWhole = (member: string): boolean => reads.has(member) && ![...reads].some((read) => read.startsWith(`${member}.`))
  return source.includes('result') || reads.has('*') || isWhole('mcp') || isWhole('mcp.tool')
}

/** The answer, as far as it was read. */
export function noteAnswer(exchange: Exchange, message: RpcMessage): void {
  const { tool } = variablesOf(exchange)
  if (message.error !== undefined) {
    if (tool !== undefined) tool['error'] = message.error
    if (isObject(message.error)) noteError(exchange, Number(message.error['code']), String(message.error['message']))
  } else if (tool !== undefined) tool['result'] = message.result
}

export function noteError(exchange: Exchange, code: number, message: string): void {
  setLogField(exchange, 'mcp.error.code', Number.isFinite(code) ? code : 0)
  setLogField(exchange, 'mcp.error.message', message.slice(0, 500))
}

/** The item that the request was about, if it was let through to its target. */
export function itemOf(exchange: Exchange): Item | undefined {
  return admittedItem.get(exchange)
}
