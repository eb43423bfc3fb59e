import { chargeMcpLimits } from '../../../request/exchange/mcp-limits.ts'
import type { Item, ItemKind } from '../target/authorize.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { checkInput } from './guarded.ts'
import { hookCall, resultCheck } from './hooked.ts'
import { findOwner, findPortable, isInView } from './lists.ts'
import { isPinAllowed } from './pinned.ts'
import { recordAdmitted, recordItem } from '../record/log.ts'
import { fold, prefixContent, prefixTask, splitName, splitUri, withPrefixedUri, type Addressed } from '../message/names.ts'
import type { Reply } from '../message/reply.ts'
import { badAnswer, type Run } from '../run/run.ts'
import { INVALID_PARAMS, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import { callOne, type ChangeAnswer } from '../run/single.ts'
import type { Target } from '../target/target.ts'

/** Kinds of items that are called by name. */
type NamedKind = 'tool' | 'prompt'

/** Handles tools/call and prompts/get. */
export async function callNamed(run: Run, request: RpcRequest, text: string, kind: NamedKind): Promise<Reply> {
  const name = textParam(request, 'name')
  const found = await resolveName(run, kind, name)
  if (kind === 'tool' && run.config.hasRules) rejectVariants(request.params ?? {}, 'arguments')
  const given = kind === 'tool' ? argumentsOf(run, found, request, name) : undefined
  const target = admit(run, kind, found, name, given)
  const charged = chargeMcpLimits(run.exchange, kind)
  if (charged !== undefined) await charged
  const serverName = found?.name ?? name
  const hooked = kind === 'tool' && run.hooks !== undefined ? await hookCall(run, target, request, { tool: serverName, args: given }) : { arguments: given }
  if ('reply' in hooked) return hooked.reply
  const checked = kind === 'tool' && target.guards !== undefined ? await checkInput(run, target, request, hooked.arguments) : hooked
  if ('reply' in checked) return checked.reply
  const args = checked.arguments
  // Logs have the arguments that the server receives.
  if (args !== given) recordItem(run, { kind, target: target.name, name: serverName, arguments: args })
  if (kind === 'tool') run.onArguments?.(args)
  const change: ChangeAnswer | undefined = run.config.naming.prefixesUris
    ? (message) => prefixResult(target, message, kind === 'tool' ? 'content' : 'messages')
    : undefined
  // A hook may have removed the arguments.
  const params = { name: serverName, ...(args === undefined && given === undefined ? {} : { arguments: args }) }
  const check = kind === 'tool' ? resultCheck(run, target, serverName) : undefined
  return callOne(run, target, request, rewritten(run, request, text, params), { name: serverName, arguments: args, change, check })
}

/** The arguments of a tool call as the target receives them. `shown` is the name that the client sent. */
function argumentsOf(run: Run, found: Addressed | undefined, { params }: RpcRequest, shown: string): unknown {
  const tools = found && run.config.targetOf.get(found.target)?.tools
  const given = params?.['arguments']
  if (tools === undefined || found === undefined) return given
  try {
    return tools.argumentsOf(found.name, given, run.exchange)
  } catch (error) {
    // The error must not reveal that a denied tool exists.
    admit(run, 'tool', found, shown)
    throw error
  }
}

/** Handles resources/read, subscribe and unsubscribe. */
export async function callResource(run: Run, request: RpcRequest, text: string): Promise<Reply> {
  const uri = textParam(request, 'uri')
  const found = resolveUri(run, uri)
  const target = admit(run, 'resource', found, uri)
  const charged = chargeMcpLimits(run.exchange, 'resource')
  if (charged !== undefined) await charged
  const change: ChangeAnswer | undefined =
    run.config.naming.prefixesUris && request.method === 'resources/read' ? (message) => prefixResult(target, message, 'contents') : undefined
  return callOne(run, target, request, rewritten(run, request, text, { uri: found?.name ?? uri }), { name: found?.name ?? uri, change })
}

/** Handles completion/complete, which refers to a prompt by name or to a resource template by URI. */
export async function complete(run: Run, request: RpcRequest, text: string): Promise<Reply> {
  const reference = request.params?.['ref']
  const isPrompt = isObject(reference) && reference['type'] === 'ref/prompt'
  const isResource = isObject(reference) && reference['type'] === 'ref/resource'
  const member = isPrompt ? 'name' : 'uri'
  const name = isObject(reference) ? reference[member] : undefined
  if ((!isPrompt && !isResource) || !isObject(reference) || typeof name !== 'string')
    throw McpFailure.rpc(INVALID_PARAMS, 'params.ref must be a ref/prompt with a name, or a ref/resource with a uri')
  rejectVariants(reference, member)
  const kind = isPrompt ? 'prompt' : 'resource'
  const found = isPrompt ? await resolveName(run, 'prompt', name) : resolveUri(run, name)
  const target = admit(run, kind, found, name)
  const change = { ref: { ...reference, [member]: found?.name ?? name } }
  return callOne(run, target, request, rewritten(run, request, text, change))
}

/** The target of a tool or prompt, and its name there. */
async function resolveName(run: Run, kind: NamedKind, name: string): Promise<Addressed | undefined> {
  const portable = kind === 'tool' && run.config.portable !== undefined ? await findPortable(run, name) : undefined
  const found = portable === undefined ? await resolveShown(run, kind, name) : (portable ?? undefined)
  if (kind !== 'tool' || found === undefined) return found
  if (!isInView(run.config, { name: found.target }, kind, found.name)) return undefined
  const tools = run.config.targetOf.get(found.target)?.tools
  const serverName = tools === undefined ? found.name : tools.serverName(found.name)
  if (serverName === undefined || (run.config.pins !== undefined && !(await isPinAllowed(run, found.target, serverName)))) return undefined
  return tools === undefined ? found : { target: found.target, name: serverName }
}

/** The target of a tool or prompt, and its name for clients without prefix. */
function resolveShown(run: Run, kind: NamedKind, name: string): Promise<Addressed | undefined> | Addressed | undefined {
  const { naming, targets } = run.config
  if (naming.prefixesNames) return splitName(name)
  if (naming.looksUp) return findOwner(run, kind, name)
  const [sole] = targets
  return sole && { target: sole.name, name }
}

/** The target of a resource, and its URI there. */
export function resolveUri({ config }: Run, uri: string): Addressed | undefined {
  if (config.naming.prefixesUris) return splitUri(uri)
  const [sole] = config.targets
  return sole && { target: sole.name, name: uri }
}

/** The target of an item, if the client may use it. A denied item is reported like one that does not exist (mcp.md §3.2). */
export function admit(run: Run, kind: ItemKind, found: Addressed | undefined, shown: string, args?: unknown): Target {
  const target = found && run.config.targetOf.get(found.target)
  if (found !== undefined && target !== undefined) {
    const item: Item = { kind, target: target.name, name: found.name, ...(args === undefined ? {} : { arguments: args }) }
    recordItem(run, item)
    if (run.judge(item, target.rules)) {
      recordAdmitted(run, item)
      return target
    }
  }
  throw McpFailure.rpc(INVALID_PARAMS, `Unknown ${kind}: ${shown}`)
}

function textParam({ params, method }: RpcRequest, member: 'name' | 'uri'): string {
  const value = params?.[member]
  if (params === undefined || typeof value !== 'string') throw McpFailure.rpc(INVALID_PARAMS, `params.${member} of ${method} must be a string`)
  rejectVariants(params, member)
  return value
}

/** Rejects variants such as `Name`, which some JSON libraries read as `name`: the target must see the item that the rules checked. */
export function rejectVariants(object: JsonObject, member: string): void {
  const variant = Object.keys(object).find((key) => key !== member && fold(key) === fold(member))
  if (variant !== undefined) throw McpFailure.rpc(INVALID_PARAMS, `params has ${variant} beside ${member}: remove it`)
}

/** The request as the target receives it. If rules checked it, it is serialized again, so that the target reads what they read. */
export function rewritten({ config }: Run, request: RpcRequest, text: string, change: JsonObject): string {
  if (!config.hasRules && config.portable === undefined && !config.naming.prefixesNames && !config.naming.prefixesUris) return text
  return toText({ ...request, params: { ...request.params, ...change } })
}

const methodOf = { content: 'tools/call', messages: 'prompts/get', contents: 'resources/read' } as const

/** Prefixes the resources in a result: content of a tool, messages of a prompt, contents of a resource. */
function prefixResult(target: Target, message: RpcMessage, member: 'content' | 'messages' | 'contents'): RpcMessage {
  const { result } = message
  if (message.error !== undefined || (isObject(result) && result['resultType'] === 'input_required')) return message
  if (isObject(result) && result['resultType'] === 'task') return { ...message, result: prefixTask(target.name, result) }
  // A tool may return structured content only.
  if (!isObject(result) || (member !== 'content' && !Array.isArray(result[member]))) throw badAnswer(target, methodOf[member])
  if (!Array.isArray(result[member])) return message
  const items = result[member].map((item: unknown) => {
    if (!isObject(item)) return item
    if (member === 'contents') return withPrefixedUri(target.name, item, 'uri')
    return member === 'content' ? prefixContent(target.name, item) : { ...item, content: prefixContent(target.name, item['content']) }
  })
  return { ...message, result: { ...result, [member]: items } }
}
