import { BufferBody } from '../../../http/body.ts'
import { capabilitiesOf, offersOf, withoutReverse, type Offer } from '../message/capabilities.ts'
import { noTargets, UpstreamRpcError } from '../message/failure.ts'
import { callAll, failureText } from '../run/gather.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { Flow, streamOf, type Reply } from '../message/reply.ts'
import { isServed } from '../message/request.ts'
import { mapServerMessage } from '../run/reverse.ts'
import { badAnswer, endLinks, readAnswer, readInTime, stateOf, type Run } from '../run/run.ts'
import { startTarget } from '../run/start.ts'
import { resultText, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { Target } from '../target/target.ts'

/** Options of `initialize`. */
export interface InitializeOptions {
  /** Assigns the id of the session and returns it; undefined in Stateless mode. */
  readonly admit: (() => string) | undefined
  /** Build version for `serverInfo`. */
  readonly version: string
}

/** Starts sessions with all targets (mcp.md §4.1). The result of a single target is unchanged; those of several are merged. */
export async function initialize(run: Run, request: RpcRequest, text: string, options: InitializeOptions): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  const sent = config.isStateful ? text : toText(withoutReverseOf(request))
  if (!config.isMultiplexing && sole !== undefined) return initializeOne(run, sole, request, sent, options)
  const early: string[] = []
  const results = new Map<Target, JsonObject>()
  const started: Promise<unknown>[] = []
  try {
    const answered = await callAll(run, config.targets, (target) => {
      const answer = startTarget(run, target, request, sent)
      started.push(answer.catch(() => undefined))
      return answer
    })
    const flow = new Flow()
    await Promise.all(
      answered.map(async ({ target, answer }) => {
        try {
          const message = await readInTime(run, target, answer, request.id, flow, keepEarly(run, target, early))
          if (message.error !== undefined) throw new UpstreamRpcError(message)
          results.set(target, resultOf(target, message))
        } catch (error) {
          if (!config.isFailOpen) throw error
        }
      }),
    )
    if (results.size === 0) throw noTargets()
  } catch (error) {
    // Ends the sessions that were started, those of slow targets too, without delaying the response.
    void Promise.all(started).then(() => endLinks(run))
    if (error instanceof UpstreamRpcError) return streamOf([failureText(request, error)])
    throw error
  }
  for (const target of config.targets) {
    const result = results.get(target)
    const state = stateOf(run.session, target)
    if (result === undefined) state.isMissing = true
    else state.offers = offersOf(result)
  }
  const merged = mergeResults(
    run,
    request,
    [...config.targets.values()].filter((target) => results.has(target)),
    results,
    options.version,
  )
  return streamOf([...early, resultText(request.id, merged)], admitOrEnd(run, options.admit))
}

/** Collects messages before the responses. They wait for the response head, whose session id depends on all responses. */
function keepEarly(run: Run, target: Target, early: string[]): (message: RpcMessage) => void {
  return (message) => {
    const mapped = mapServerMessage(run, target, message)
    if (mapped !== undefined && early.length < MAX_EARLY) early.push(toText(mapped))
  }
}

const MAX_EARLY = 64

async function initializeOne(run: Run, target: Target, request: RpcRequest, text: string, { admit }: InitializeOptions): Promise<Reply> {
  const answer = await startTarget(run, target, request, text)
  if (answer.kind === 'refused') return { kind: 'relay', response: answer.response }
  const early: string[] = []
  const message = await readAnswer(run, target, answer, request.id, new Flow(), keepEarly(run, target, early))
  run.onAnswer?.(message)
  if (message.error === undefined) stateOf(run.session, target).offers = offersOf(resultOf(target, message))
  const sessionId = message.error === undefined ? admitOrEnd(run, admit) : undefined
  return answer.kind === 'json' ? { kind: 'message', body: new BufferBody(toText(message)), sessionId } : streamOf([...early, toText(message)], sessionId)
}

/** The session id. Without one the client could not end the sessions with the targets. */
function admitOrEnd(run: Run, admit: InitializeOptions['admit']): string | undefined {
  try {
    return admit?.()
  } catch (error) {
    void endLinks(run)
    throw error
  }
}

function resultOf(target: Target, { result }: RpcMessage): JsonObject {
  if (!isObject(result) || typeof result['protocolVersion'] !== 'string') throw badAnswer(target, 'initialize')
  return result
}

function withoutReverseOf(request: RpcRequest): RpcRequest {
  const { params } = request
  return isObject(params?.['capabilities']) ? { ...request, params: { ...params, capabilities: withoutReverse(params['capabilities']) } } : request
}

function mergeResults(run: Run, request: RpcRequest, targets: readonly Target[], results: ReadonlyMap<Target, JsonObject>, version: string): JsonObject {
  const all = targets.map((target) => results.get(target) ?? {})
  const requested = request.params?.['protocolVersion']
  const versions = [...(typeof requested === 'string' && isServed(requested) ? [requested] : []), ...all.map((result) => String(result['protocolVersion']))]
  return {
    // Revisions are dates, so the first in text order is the oldest.
    protocolVersion: versions.toSorted()[0],
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, ...(run.config.isStateful ? { subscribe: true } : {}) },
      ...optionalCapabilities(all),
    },
    serverInfo: { name: 'proxy', version },
    instructions: mergeInstructions(run, targets, all),
  }
}

/** The capabilities that some servers announce, merged. */
export function optionalCapabilities(results: readonly JsonObject[]): JsonObject {
  const has = (name: Offer): boolean => results.some((result) => capabilitiesOf(result)[name] !== undefined)
  const extensions = mergeExtensions(results)
  return {
    ...(has('logging') ? { logging: {} } : {}),
    ...(has('completions') ? { completions: {} } : {}),
    ...(extensions === undefined ? {} : { extensions }),
  }
}

/** Extensions that any server advertises, with their settings if all of these servers agree. */
function mergeExtensions(results: readonly JsonObject[]): JsonObject | undefined {
  const merged = new Map<string, unknown>()
  for (const result of results) {
    const { extensions } = capabilitiesOf(result)
    if (!isObject(extensions)) continue
    for (const [name, settings] of Object.entries(extensions))
      merged.set(name, !merged.has(name) || JSON.stringify(merged.get(name)) === JSON.stringify(settings) ? settings : {})
  }
  return merged.size === 0 ? undefined : Object.fromEntries(merged)
}

/** The instructions of several servers. `results` are those of `targets`, in order. */
export function mergeInstructions({ config: { naming, targets: all } }: Run, targets: readonly Target[], results: readonly JsonObject[]): string {
  const names = all.map(({ name }) => name).join(', ')
  const preamble = naming.prefixesNames
    ? `This server joins several MCP servers (${names}). Names of tools and prompts begin with the name of their server and an underscore.`
    : `This server joins several MCP servers (${names}).`
  const texts = targets.flatMap((target, index) => {
    const text = results[index]?.['instructions']
    return typeof text === 'string' && text !== '' ? [`\n\n[${target.name}]\n${text}`] : []
  })
  return preamble + texts.join('')
}
