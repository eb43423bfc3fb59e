import type { Item, ItemKind } from '../target/authorize.ts'
import { McpFailure, noTargets, UpstreamRpcError } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { prefixName, prefixUri, type Addressed } from '../message/names.ts'
import { gather, type Gathered } from '../run/gather.ts'
import { Flow, type Reply } from '../message/reply.ts'
import { badAnswer, post, readAnswer, type Run } from '../run/run.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import { askOne } from '../run/single.ts'
import type { Target } from '../target/target.ts'

/** A kind of list. */
interface ListShape {
  readonly method: string
  /** Member of the result that holds the items. */
  readonly member: string
  readonly kind: ItemKind
  /** Member that an item is known by. */
  readonly key: 'name' | 'uri' | 'uriTemplate'
  /** Letter of the server capability (initialize.ts). */
  readonly offer: string
}

const shapes: Readonly<Record<string, ListShape>> = {
  'tools/list': { method: 'tools/list', member: 'tools', kind: 'tool', key: 'name', offer: 't' },
  'prompts/list': { method: 'prompts/list', member: 'prompts', kind: 'prompt', key: 'name', offer: 'p' },
  'resources/list': { method: 'resources/list', member: 'resources', kind: 'resource', key: 'uri', offer: 'r' },
  'resources/templates/list': { method: 'resources/templates/list', member: 'resourceTemplates', kind: 'resource', key: 'uriTemplate', offer: 'r' },
}

export const listShape = (method: string): ListShape | undefined => shapes[method]

/** Pages of one target that are read for a merged list. */
const MAX_PAGES = 64
/** Items of all targets in one list. */
const MAX_ITEMS = 50_000

/** Lists with one target pass cursors on; lists of several are read to their ends, and given as one page (mcp.md §4.2). */
export function list(run: Run, request: RpcRequest, text: string, shape: ListShape): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  if (!config.isMultiplexing && sole !== undefined) {
    const isChanged =
      config.rules !== undefined || sole.rules !== undefined || (shape.key === 'name' ? config.naming.prefixesNames : config.naming.prefixesUris)
    const change = (message: RpcMessage): RpcMessage =>
      message.error === undefined
        ? { ...message, result: { ...(message.result as JsonObject), [shape.member]: showItems(run, sole, shape, itemsOf(sole, shape, message)) } }
        : message
    return askOne(run, sole, request, text, { method: request.method }, isChanged ? change : undefined)
  }
  if (request.params?.['cursor'] !== undefined) throw McpFailure.rpc(INVALID_PARAMS, 'params.cursor is not one that this server gave: its lists have one page')
  if (sole === undefined) throw noTargets()
  return gather(run, config.targets, request, text, {
    // Some servers have what they did not announce; the others may say so in any way.
    isOptional: (target) => !mayOffer(run, target, shape.offer),
    // Written as each target answers: after the slowest, only its own items are left to do.
    read: async (target, first, out, flow) => {
      const items = showItems(run, target, shape, await drain(run, target, request, shape, first, out, flow))
      return isLookedUp(run, shape) ? { items, text: '' } : { items: [], text: itemsText(items) }
    },
    merge: (gathered: readonly Gathered<Shown>[]) => {
      const texts = isLookedUp(run, shape) ? [itemsText(withoutRivals(gathered.flatMap(({ value }) => value.items)))] : gathered.map(({ value }) => value.text)
      return `{"${shape.member}":[${texts.filter((one) => one !== '').join(',')}]}`
    },
  })
}

/** What one target adds to a list; `items` only where those of others decide which of them are shown. */
interface Shown {
  readonly items: readonly JsonObject[]
  readonly text: string
}

const isLookedUp = ({ config }: Run, { key }: ListShape): boolean => config.naming.looksUp && key === 'name'

/** Items as JSON, without the brackets of their list. */
const itemsText = (items: readonly JsonObject[]): string => JSON.stringify(items).slice(1, -1)

/** Whether the target said at `initialize` that it has such things; unknown after an older version's id: then it is asked. */
export function mayOffer({ session }: Pick<Run, 'session'>, { name }: Target, offer: string): boolean {
  return session.links.get(name)?.offers?.includes(offer) !== false
}

/** All items of a target, the first page being there. */
async function drain(
  run: Run,
  target: Target,
  request: RpcRequest,
  shape: ListShape,
  first: RpcMessage,
  onOther: (message: RpcMessage) => void,
  flow: Flow,
): Promise<JsonObject[]> {
  const items: JsonObject[] = []
  let page = first
  for (let count = 1; ; count++) {
    // No such method: the target has no such things.
    if (isObject(page.error) && page.error['code'] === METHOD_NOT_FOUND) return items
    if (page.error !== undefined) throw new UpstreamRpcError(page)
    items.push(...itemsOf(target, shape, page))
    const cursor = (page.result as JsonObject)['nextCursor']
    if (typeof cursor !== 'string' || cursor === '' || flow.isClosed) return items
    if (count >= MAX_PAGES || items.length > MAX_ITEMS)
      throw McpFailure.rpc(INTERNAL_ERROR, `the list of ${target.name} is longer than ${MAX_PAGES} pages or ${MAX_ITEMS} items`)
    const id = `proxy_page_${count}`
    const params = { ...request.params, cursor }
    const answer = await post(run, target, toText({ jsonrpc: '2.0', id, method: shape.method, params }), { method: shape.method, id })
    page = await readAnswer(target, answer, id, flow, onOther)
  }
}

function itemsOf(target: Target, { method, member, key }: ListShape, { result }: RpcMessage): JsonObject[] {
  const items = isObject(result) ? result[member] : undefined
  if (!Array.isArray(items) || !items.every((item) => isObject(item) && typeof item[key] === 'string')) throw badAnswer(target, method)
  return items as JsonObject[]
}

/** The items that the client may see, under the names that it sees. */
function showItems({ config: { naming }, judge }: Run, target: Target, { kind, key }: ListShape, items: readonly JsonObject[]): JsonObject[] {
  const shown: JsonObject[] = []
  for (const item of items) {
    const name = item[key] as string
    const judged: Item = { kind, target: target.name, name }
    if (!judge(judged, target.rules)) continue
    if (key === 'name' ? !naming.prefixesNames : !naming.prefixesUris) shown.push(item)
    else shown.push({ ...item, [key]: key === 'name' ? prefixName(target.name, name) : prefixUri(target.name, name) })
  }
  return shown
}

/** Names that two targets offer could not be told apart in a call. */
function withoutRivals(items: readonly JsonObject[]): JsonObject[] {
  const counts = new Map<unknown, number>()
  for (const { name } of items) counts.set(name, (counts.get(name) ?? 0) + 1)
  return items.filter(({ name }) => counts.get(name) === 1)
}

const ignore = (): void => undefined
const listOf = { tool: 'tools/list', prompt: 'prompts/list' } as const

/**
 * Who offers a name, where names have no prefix: asked of all targets, and remembered until one of them says that its list changed. What
 * the client may not use is not offered, as in lists. Throws a McpFailure when several do.
 */
export async function findOwner(run: Run, kind: 'tool' | 'prompt', name: string): Promise<Addressed | undefined> {
  const { config, session } = run
  const key = `${kind} ${name}`
  let owners = session.owners.get(key)
  if (owners === undefined) {
    owners = await askOwners(run, kind, name)
    if (session.owners.size >= MAX_OWNERS) session.owners.clear()
    if (owners.length > 0) session.owners.set(key, owners)
  }
  const [owner, rival] = owners.filter((target) => run.judge({ kind, target, name }, config.targetOf.get(target)?.rules))
  if (rival !== undefined) throw McpFailure.rpc(INVALID_PARAMS, `${kind} ${name} is served by multiple targets`)
  return owner === undefined ? undefined : { target: owner, name }
}

const MAX_OWNERS = 1000

/** Names of the targets that offer it. */
async function askOwners(run: Run, kind: 'tool' | 'prompt', name: string): Promise<string[]> {
  const { config } = run
  const shape = shapes[listOf[kind]]
  if (shape === undefined) return []
  const id = 'proxy_owner'
  const request: RpcRequest = { jsonrpc: '2.0', id, method: shape.method }
  const flow = new Flow()
  const offers = await Promise.all(
    config.targets.map(async (target) => {
      const read = async (): Promise<JsonObject[]> => {
        const first = await readAnswer(target, await post(run, target, toText(request), { method: shape.method, id }), id, flow, ignore)
        return drain(run, target, request, shape, first, ignore, flow)
      }
      const items = await (config.isFailOpen || !mayOffer(run, target, shape.offer) ? read().catch(() => []) : read())
      return items.some((item) => item['name'] === name)
    }),
  )
  return config.targets.filter((_, index) => offers[index] === true).map((target) => target.name)
}
