import { McpFailure } from '../message/failure.ts'
import { isObject } from '../message/json.ts'
import { prefixTask, splitTask } from '../message/names.ts'
import type { Reply } from '../message/reply.ts'
import { INVALID_PARAMS, METHOD_NOT_FOUND, type RpcRequest } from '../message/rpc.ts'
import type { Bridge } from '../run/bridge.ts'
import { checksResults, toFailure, type Run } from '../run/run.ts'
import { callOne } from '../run/single.ts'
import type { Target } from '../target/target.ts'
import { admit, rejectVariants, rewritten } from './calls.ts'

const METHODS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])

/** Whether the method is one of the extension `io.modelcontextprotocol/tasks`. */
export const isTaskMethod = (method: string): boolean => METHODS.has(method)

/** Handles tasks/get, update and cancel: the id names the target (mcp.md §13.3). Targets with sessions, and those whose results are checked, have no tasks. */
export async function callTask(run: Run, request: RpcRequest, text: string, bridge: Bridge): Promise<Reply> {
  const [sole] = run.config.targets
  const { prefixesUris } = run.config.naming
  if (!prefixesUris && sole !== undefined && !(await hasTasks(run, sole, bridge))) throw notFound(request)
  const id = request.params?.['taskId']
  if (typeof id !== 'string') throw McpFailure.rpc(INVALID_PARAMS, `params.taskId of ${request.method} must be a string`)
  rejectVariants(request.params ?? {}, 'taskId')
  const found = prefixesUris ? splitTask(id) : sole && { target: sole.name, name: id }
  const target = admit(run, 'task', found, id)
  if (!(await hasTasks(run, target, bridge))) throw notFound(request)
  const name = found?.name ?? id
  return callOne(run, target, request, rewritten(run, request, text, { taskId: name }), {
    name,
    change: prefixesUris ? (message) => (isObject(message.result) ? { ...message, result: prefixTask(target.name, message.result) } : message) : undefined,
  })
}

const notFound = ({ method }: RpcRequest): McpFailure => McpFailure.rpc(METHOD_NOT_FOUND, `Method not found: ${method}`, { status: 404 })

/** Whether clients may use tasks of the target. A task's result does not name its tool, so that it could not be checked. */
export async function hasTasks(run: Run, target: Target, bridge: Bridge): Promise<boolean> {
  if (checksResults(run, target)) return false
  try {
    return await bridge.isModern(run, target)
  } catch (error) {
    throw toFailure(run, target, error)
  }
}
