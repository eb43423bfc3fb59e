import { runWhileConnected } from '../../../request/exchange/connected.ts'
import type { Item, ItemKind } from '../target/authorize.ts'
import type { ListedTool } from '../hooks/index.ts'
import { McpFailure, noTargets, UpstreamRpcError } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { clientMeta } from '../message/modern.ts'
import { prefixName, prefixUri, splitName, withUiResource, type Addressed } from '../message/names.ts'
import { gather, type Gathered } from '../run/gather.ts'
import { Flow, type Reply } from '../message/reply.ts'
import { badAnswer, post, readInTime, type Run } from '../run/run.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import { callOne, type CallOptions, type ChangeAnswer } from '../run/single.ts'
import type { Target } from '../target/target.ts'

/** Describes a list method. */
interface ListShape {
  readonly method: string
  /** Member of the result that holds the items. */
  readonly member: string
  readonly kind: ItemKind
  /** Member that identifies an item. */
  readonly key: 'name' | 'uri' | 'uriTemplate'
  /** Letter of the server capability in session ids (see `initialize.ts`). */
  readonly offer: string
}

const shapes: Readonly<Record<string, ListShape>> = {
  'tools/list': { method: 'tools/list', member: 'tools', kind: 'tool', key: 'name', offer: 't' },
  'prompts/list': { method: 'prompts/list', member: 'prompts', kind: 'prompt', key: 'name', offer: 'p' },
  'resources/list': { method: 'resources/list', member: 'resources', kind: 'resource', key: 'uri', offer: 'r' },
  'resources/templates/list': { method: 'resources/templates/list', member: 'resourceTemplates', kind: 'resource', key: 'uriTemplate', offer: 'r' },
}

/** The shape of a list method; undefined if the method is none. */
export const listShape = (method: string): ListShape | undefined => shapes[method]

/** Maximum number of pages of one target in a merged list. */
const MAX_PAGES = 64
/** Maximum number of items of all targets in one list. */
const MAX_ITEMS = 50_000

/**
 * Whether lists are read to the end and returned as one page: those of several targets, and tools whose pins decide what clients see, because a tool of any
 * page can block those of all.
 */
export const isMerged = ({ config: { isMultiplexing, pins, targets } }: Pick<Run, 'config'>, { kind }: ListShape): boolean =>
  isMultiplexing || (kind === 'tool' && pins !== undefined && pins.action !== 'Audit' && targets[0]?.openapi === undefined)

/** With one target, cursors are passed through unless lists are merged (mcp.md §4.2). */
export function list(run: Run, request: RpcRequest, text: string, shape: ListShape): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  if (!isMerged(run, shape) && sole !== undefined) {
    return callOne(run, sole, request, text, listOptions(run, sole, shape))
  }
  if (request.params?.['cursor'] !== undefined) throw McpFailure.rpc(INVALID_PARAMS, 'params.cursor is not one that this server gave: its lists have one page')
  if (sole === undefined) throw noTargets()
  return gather(run, config.targets, request, text, {
    // Some servers have items that they did not announce. Any error of the others means that they have none.
    isOptional: (target) => config.isMultiplexing && !mayOffer(run, target, shape.offer),
    // Serialize when a target responds: after the slowest response, only its own items remain.
    read: async (target, first, out, flow) => {
      const items = showItems(run, target, shape, await drain(run, target, request, shape, first, out, flow))
      return isLookedUp(run, shape) || isHooked(run, shape) ? { items, text: '' } : { items: [], text: itemsText(items) }
    },
    merge: async (gathered: readonly Gathered<Shown>[]) => {
      if (isHooked(run, shape))
        return `{"${shape.member}":[${itemsText(
          await hookedTools(
            run,
            shape,
            gathered.map(({ target, value }) => ({ target, items: value.items })),
          ),
        )}]}`
      const texts = isLookedUp(run, shape)
        ? [
            itemsText(
              withoutDuplicates(
                run,
                shape,
                gathered.map(({ target, value }) => ({ target, items: value.items })),
              ),
            ),
          ]
        : gathered.map(({ value }) => value.text)
      return `{"${shape.member}":[${texts.filter((one) => one !== '').join(',')}]}`
    },
  })
}

/** How a list of a single target becomes what the client may see. */
function listOptions(run: Run, target: Target, shape: ListShape): CallOptions {
  const change = listChange(run, target, shape)
  const isReviewed = run.config.pins !== undefined && shape.kind === 'tool' && target.openapi === undefined
  const reviewOf = (message: RpcMessage): Promise<RpcMessage> => (isReviewed ? reviewed(run, target, shape, message) : Promise.resolve(message))
  if (!isHooked(run, shape)) return { change, check: isReviewed ? reviewOf : undefined }
  // Hooks see the list as the client does.
  const check = async (message: RpcMessage): Promise<RpcMessage> => {
    const passed = await reviewOf(message)
    if (passed.error !== undefined) return passed
    const items = showItems(run, target, shape, itemsOf(target, shape, passed))
    const tools = await hookedTools(run, shape, [{ target, items }])
    return { ...passed, result: { ...(passed.result as JsonObject), [shape.member]: tools } }
  }
  return { check }
}

const isHooked = ({ hooks }: Run, { kind }: ListShape): boolean => kind === 'tool' && hooks?.changesLists === true

/** Tools as the client sees them, after the hooks of plugins. Tools of several targets with one name are left out if names are looked up. */
async function hookedTools(run: Run, shape: ListShape, lists: readonly TargetItems[]): Promise<JsonObject[]> {
  const listed = lists.flatMap(({ target, items }) => items.map((tool): ListedTool => ({ server: target.name, tool })))
  const unique = isLookedUp(run, shape) ? new Set(withoutDuplicates(run, shape, lists)) : undefined
  const shown = unique === undefined ? listed : listed.filter(({ tool }) => unique.has(tool))
  return ((await run.hooks?.list(shown)) ?? shown).map(({ tool }) => tool)
}

/** Changes a list of a target to what the client may see; undefined if the client sees it as it is. Throws a McpFailure if the list is malformed. */
function listChange(run: Run, target: Target, shape: ListShape): ChangeAnswer | undefined {
  const { config } = run
  const isChanged =
    config.rules !== undefined ||
    target.rules !== undefined ||
    (shape.kind === 'tool' && (target.tools !== undefined || config.offersTool !== undefined || config.portable !== undefined)) ||
    (shape.key === 'name' ? config.naming.prefixesNames : config.naming.prefixesUris)
  if (!isChanged) return undefined
  return (message) =>
    message.error === undefined
      ? { ...message, result: { ...(message.result as JsonObject), [shape.member]: showItems(run, target, shape, itemsOf(target, shape, message)) } }
      : message
}

/**
 * Changes responses whose request is not known, because they arrive on another stream than its own: the members of a result name the list.
 * Returns undefined if the target's lists are not changed. The change throws a McpFailure if a list is malformed.
 */
export function changeOfLists(run: Run, target: Target): ChangeAnswer | undefined {
  const changes = Object.values(shapes).flatMap((shape) => {
    const change = listChange(run, target, shape)
    return change === undefined ? [] : [{ member: shape.member, change }]
  })
  if (changes.length === 0) return undefined
  return (message) =>
    changes.reduce((changed, { member, change }) => (isObject(message.result) && member in message.result ? change(changed) : changed), message)
}

/** A page of a target's tools, compared with pins that hide none. */
async function reviewed(run: Run, target: Target, shape: ListShape, message: RpcMessage): Promise<RpcMessage> {
  if (message.error !== undefined) return message
  const items = await review(run, target, shape, itemsOf(target, shape, message))
  return { ...message, result: { ...(message.result as JsonObject), [shape.member]: items } }
}

/** The items that pins allow. */
async function review({ config: { pins }, exchange }: Run, target: Target, { kind }: ListShape, items: JsonObject[]): Promise<readonly JsonObject[]> {
  if (pins === undefined || kind !== 'tool' || target.openapi !== undefined) return items
  const offered = await runWhileConnected(pins.review(target.name, items), exchange)
  if (exchange.trace !== undefined && offered.length < items.length) {
    const seen = new Set(offered)
    for (const item of items) if (!seen.has(item)) exchange.trace.addHidden(itemOf(kind, target, item['name']), pins.explain(target.name, String(item['name'])))
  }
  return offered
}

const itemOf = (kind: ItemKind, { name: target }: Target, name: unknown): Item => ({ kind, target, name: String(name) })

/** Contribution of one target to a list. `items` is set if the items of other targets decide which ones are shown. */
interface Shown {
  readonly items: readonly JsonObject[]
  readonly text: string
}

const isLookedUp = ({ config }: Run, { key, kind }: ListShape): boolean =>
  (config.naming.looksUp && key === 'name') || (config.portable !== undefined && kind === 'tool')

/** Items as JSON without the brackets of the array. */
const itemsText = (items: readonly JsonObject[]): string => JSON.stringify(items).slice(1, -1)

/** Whether the target may have such items: it announced them at `initialize`, or the session id of an older version does not say. */
export function mayOffer({ session }: Pick<Run, 'session'>, { name }: Target, offer: string): boolean {
  return session.links.get(name)?.offers?.includes(offer) !== false
}

/** Reads all pages of a target's list, starting with the first, which was read already. Items that pins do not allow are left out. */
async function drain(
  run: Run,
  target: Target,
  request: RpcRequest,
  shape: ListShape,
  first: RpcMessage,
  onOther: (message: RpcMessage) => void,
  flow: Flow,
): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = []
  let page = first
  for (let count = 1; ; count++) {
    // A target without the method has no such items.
    if (isObject(page.error) && page.error['code'] === METHOD_NOT_FOUND) break
    if (page.error !== undefined) throw new UpstreamRpcError(page)
    items.push(...itemsOf(target, shape, page))
    run.onPage?.(page.result as JsonObject, count === 1)
    const cursor = (page.result as JsonObject)['nextCursor']
    if (typeof cursor !== 'string' || cursor === '') break
    // Nobody reads it, and a part of a list must not be taken for the whole.
    if (flow.isClosed) return []
    if (count >= MAX_PAGES || items.length > MAX_ITEMS)
      throw McpFailure.rpc(INTERNAL_ERROR, `the list of an upstream is longer than ${MAX_PAGES} pages or ${MAX_ITEMS} items`, {
        detail: `the list of ${target.name} is too long`,
      })
    const id = nextId(run)
    const params = { ...request.params, cursor }
    const answer = await post(run, target, toText({ jsonrpc: '2.0', id, method: shape.method, params }), { method: shape.method, id })
    page = await readInTime(run, target, answer, id, flow, onOther)
  }
  return review(run, target, shape, items)
}

function itemsOf(target: Target, { method, member, key }: ListShape, { result }: RpcMessage): JsonObject[] {
  const items = isObject(result) ? result[member] : undefined
  if (!Array.isArray(items) || !items.every((item) => isObject(item) && typeof item[key] === 'string')) throw badAnswer(target, method)
  return items as JsonObject[]
}

/** The items that the client may use, with the names that it sees. */
function showItems(
  { config, judge, onListed, exchange: { trace } }: Run,
  target: Target,
  { kind, key }: ListShape,
  items: readonly JsonObject[],
): JsonObject[] {
  const shown: JsonObject[] = []
  const { prefixesUris } = config.naming
  const showUi = (uri: string): string | undefined => {
    if (!judge({ kind: 'resource', target: target.name, name: uri }, target.rules, true)) return undefined
    return prefixesUris ? prefixUri(target.name, uri) : uri
  }
  for (const item of items) {
    const name = item[key] as string
    const offered = kind === 'tool' && target.tools !== undefined ? target.tools.show(item, name) : item
    if (offered === undefined) {
      trace?.addHidden(itemOf(kind, target, name), target.tools?.explain(name) ?? '')
      continue
    }
    const selected = kind === 'tool' ? withUiResource(offered, showUi) : offered
    const judged: Item = { kind, target: target.name, name }
    if (!judge(judged, target.rules, true)) continue
    onListed?.(judged)
    const own = selected[key] as string
    if (!isInView(config, target, kind, own)) {
      trace?.addHidden(judged, 'the view of this host and path does not have it')
      continue
    }
    const seen = key === 'name' ? shownName(config, target, kind, own) : prefixesUris ? prefixUri(target.name, own) : own
    shown.push(seen === own ? selected : { ...selected, [key]: seen })
  }
  return shown
}

/** Whether the view of the request has the item. `own` is the name for clients without prefix. */
export const isInView = ({ offersTool, naming }: Run['config'], target: Pick<Target, 'name'>, kind: ItemKind, own: string): boolean =>
  kind !== 'tool' || offersTool === undefined || offersTool(naming.prefixesNames ? prefixName(target.name, own) : own)

/** The name for clients of a tool or prompt. `own` is the name without prefix. */
function shownName({ naming, portable }: Run['config'], target: Target, kind: ItemKind, own: string): string {
  const full = naming.prefixesNames ? prefixName(target.name, own) : own
  return kind === 'tool' && portable !== undefined ? portable.nameOf(full, { target: target.name, name: own }) : full
}

/**
 * Removes names that two targets offer: a call could not be routed. With portable names, also those of two tools of one target. Otherwise a target
 * that lists an item twice keeps both, as with prefixes.
 */
function withoutDuplicates({ config: { clashes, portable }, exchange: { trace } }: Run, { kind }: ListShape, lists: readonly TargetItems[]): JsonObject[] {
  const owners = new Map<unknown, string[]>()
  const countsAll = portable !== undefined && kind === 'tool'
  for (const { target, items } of lists)
    for (const { name } of items) {
      const known = owners.get(name)
      if (known === undefined) owners.set(name, [target.name])
      else if (countsAll || known.at(-1) !== target.name) known.push(target.name)
    }
  for (const [name, targets] of owners) {
    if (targets.length === 1) continue
    trace?.addHidden({ kind, target: '', name: String(name) }, `${targets.length} items have this name`)
    clashes.report(kind, String(name), targets)
  }
  return lists.flatMap(({ items }) => items.filter(({ name }) => owners.get(name)?.length === 1))
}

const ignore = (): void => undefined
const listOf = { tool: 'tools/list', prompt: 'prompts/list' } as const

/**
 * The target that offers a name, if names have no prefix. Lists of all targets are searched, and the result is cached until a target reports
 * that its list changed; if a target did not respond, for some seconds. Denied items are skipped, as in lists. Throws a McpFailure if several targets offer it.
 */
export async function findOwner(run: Run, kind: 'tool' | 'prompt', name: string): Promise<Addressed | undefined> {
  const { config, session } = run
  const key = `${kind} ${name}`
  let owners = session.owners.get(key)
  if (owners === undefined || owners.untilMs <= session.usedAtMs) {
    const lists = await readLists(run, kind)
    const targets = lists.filter(({ target, items }) => items.some((item) => ownName(target, kind, item) === name)).map(({ target }) => target.name)
    owners = { targets, untilMs: lists.some(({ hasFailed }) => hasFailed) ? session.usedAtMs + INCOMPLETE_MS : Infinity }
    if (session.owners.size >= MAX_OWNERS) session.owners.clear()
    if (targets.length > 0) session.owners.set(key, owners)
  }
  const [owner, rival] = owners.targets.filter((found) => {
    const target = config.targetOf.get(found)
    const serverName = kind === 'tool' && target?.tools !== undefined ? target.tools.serverName(name) : name
    return serverName !== undefined && run.judge({ kind, target: found, name: serverName }, target?.rules)
  })
  if (rival !== undefined) throw McpFailure.rpc(INVALID_PARAMS, `${kind} ${name} is served by multiple targets`)
  return owner === undefined ? undefined : { target: owner, name }
}

const MAX_OWNERS = 1000
/** How long owners are known while a target does not respond, milliseconds: it may be slow to fail. */
const INCOMPLETE_MS = 10_000

/** The tool of a name with a digest (mcp.md §4.6). If no list had it yet, lists are read. `null` if two tools have the name. */
export async function findPortable(run: Run, name: string): Promise<Addressed | null | undefined> {
  const { config } = run
  const { portable } = config
  if (portable?.mayHaveDigest(name) !== true) return undefined
  const known = portable.find(name)
  if (known !== undefined) return known
  for (const { target, items } of await readLists(run, 'tool'))
    for (const item of items) {
      const own = ownName(target, 'tool', item)
      if (own !== undefined) shownName(config, target, 'tool', own)
    }
  return portable.find(name)
}

/** Name without prefix for clients; undefined if the tool is not offered. */
function ownName({ tools }: Target, kind: 'tool' | 'prompt', item: JsonObject): string | undefined {
  const name = item['name'] as string
  return kind === 'tool' && tools !== undefined ? tools.shownName(name) : name
}

/** The items of a target. */
interface TargetItems {
  readonly target: Target
  readonly items: readonly JsonObject[]
}

/** Requests of one session may be open at the same time, so their ids differ. */
let issued = 0
function nextId({ idPrefix }: Run): string {
  issued = (issued + 1) % Number.MAX_SAFE_INTEGER
  return `${idPrefix}_list_${issued}`
}

/**
 * The tools of all targets that the client may use, as it sees them. `name`: only those of the target that has a tool of this name are needed.
 */
export async function readTools(run: Run, name?: string): Promise<JsonObject[]> {
  const { config } = run
  const shape = shapes[listOf.tool]
  if (shape === undefined) return []
  const prefix = name !== undefined && config.naming.prefixesNames && config.portable === undefined ? splitName(name)?.target : undefined
  const owner = prefix === undefined ? undefined : config.targetOf.get(prefix)
  const lists = await readLists(run, 'tool', owner && [owner])
  return hookedTools(
    run,
    shape,
    lists.map(({ target, items }) => ({ target, items: showItems(run, target, shape, items) })),
  )
}

/** The definition of a tool as its server has it; undefined if the list of the server does not have it, or pins do not allow it. */
export async function readTool(run: Run, target: Target, name: string): Promise<JsonObject | undefined> {
  const [found] = await readLists(run, 'tool', [target])
  return found?.items.find((item) => item['name'] === name)
}

/** The list of a target, which is empty if the target failed. */
interface ReadList extends TargetItems {
  readonly hasFailed: boolean
}

/** Reads the lists of targets, as the targets return them. Errors of targets that may be missing are ignored. */
async function readLists(run: Run, kind: 'tool' | 'prompt', targets = run.config.targets): Promise<ReadList[]> {
  const { config } = run
  const shape = shapes[listOf[kind]]
  if (shape === undefined) return []
  const id = nextId(run)
  const request: RpcRequest = { jsonrpc: '2.0', id, method: shape.method, ...(run.client && { params: { _meta: clientMeta(run.client) } }) }
  const flow = new Flow()
  return Promise.all(
    targets.map(async (target): Promise<ReadList> => {
      const read = async (): Promise<readonly JsonObject[]> => {
        const first = await readInTime(run, target, await post(run, target, toText(request), { method: shape.method, id }), id, flow, ignore)
        return drain(run, target, request, shape, first, ignore, flow)
      }
      const isOffering = mayOffer(run, target, shape.offer)
      try {
        return { target, items: await read(), hasFailed: false }
      } catch (error) {
        if (!config.isFailOpen && isOffering) throw error
        return { target, items: [], hasFailed: isOffering }
      }
    }),
  )
}
