import { McpFailure } from '../message/failure.ts'
import { isObject } from '../message/json.ts'
import { callAll, isSessionOver } from '../run/gather.ts'
import { Flow, PASSED_CHARS, type EventOutput, type Reply } from '../message/reply.ts'
import { mapServerMessage, mayBeMapped } from '../run/reverse.ts'
import { checksResults, discard, linkTo, RefusedError, stateOf, toFailure, type Run } from '../run/run.ts'
import { isResponse, parseUpstreamMessage, toText, type RpcMessage } from '../message/rpc.ts'
import type { ChangeAnswer } from '../run/single.ts'
import type { LargePart, SseEvent } from '../sse/parser.ts'
import type { EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import type { LinkAnswer } from '../upstream/link.ts'
import { changeOfLists } from './lists.ts'

/**
 * The stream of messages that targets send on their own (GET). With one target, its event ids are passed through, so that clients can
 * resume (decision D5). `isEndless`: the client cannot reconnect, so its stream stays open.
 */
export async function listen(run: Run, lastEventId: string | undefined, isEndless = false): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  const answers = config.isMultiplexing ? await listenToAll(run) : sole === undefined ? [] : [await listenToOne(run, sole, lastEventId)]
  const [first] = answers
  if (!config.isMultiplexing && first?.answer.kind === 'refused') return { kind: 'relay', response: first.answer.response }
  return { kind: 'stream', feed: (out) => feedAll(run, answers, out, isEndless) }
}

interface Listened {
  readonly target: Target
  readonly answer: LinkAnswer
}

async function listenToOne(run: Run, target: Target, lastEventId: string | undefined): Promise<Listened> {
  try {
    return { target, answer: await linkTo(run, target).listen(run, lastEventId) }
  } catch (error) {
    throw toFailure(run, target, error)
  }
}

/** Targets without such a stream are left out; if none has one, the response is 405. */
async function listenToAll(run: Run): Promise<Listened[]> {
  const { config, session } = run
  const there = config.targets.filter((target) => !stateOf(session, target).isMissing)
  let without = 0
  const ask = async (target: Target): Promise<LinkAnswer> => {
    const { answer } = await listenToOne(run, target, undefined)
    if (answer.kind !== 'refused' || answer.response.status !== 405) return answer
    answer.response.body?.cancel()
    without++
    return { kind: 'accepted' }
  }
  try {
    const answered = await callAll(run, there, ask)
    if (without === there.length) throw McpFailure.method('POST, DELETE', 'no upstream offers a stream of its own messages')
    return answered
  } catch (error) {
    // An open stream without messages keeps clients from reconnecting repeatedly.
    const isTolerated =
      config.isFailOpen && !(error instanceof McpFailure && error.rpc === undefined) && !(error instanceof RefusedError && error.response.status === 404)
    if (isTolerated) return []
    throw error
  }
}

/** Where and when to resume a target's stream. */
interface ResumePoint {
  lastEventId: string | undefined
  delayMs: number
}

/** Default delay, and upper limit of a target's `retry`. */
const REOPEN_MS = 1000
const MAX_REOPEN_MS = 30_000

/**
 * Merges the event streams of all targets. Reconnects a closed target stream while others are open, because the client cannot see that
 * it closed. When the last one closes, the client's stream ends, unless it `isEndless`.
 */
function feedAll(run: Run, answers: readonly Listened[], out: EventOutput, isEndless: boolean): Flow {
  const flow = new Flow()
  const streams = answers.flatMap(({ target, answer }) => (answer.kind === 'events' ? [{ target, events: answer.events }] : []))
  let open = streams.length
  const attach = (target: Target, events: EventSource, place: ResumePoint): void => {
    let isQuiet = true
    const rule = responseRule(run, target)
    const onEnd = (): void => {
      flow.remove(events)
      if (--open === 0 && !isEndless) return out.end()
      reopen(target, { ...place, delayMs: isQuiet ? Math.min(place.delayMs * 2, MAX_REOPEN_MS) : place.delayMs })
    }
    flow.add(events)
    const note = ({ id, retry }: Omit<SseEvent, 'data'>): void => {
      if (id !== undefined) place.lastEventId = id
      if (retry !== undefined) place.delayMs = Math.min(Math.max(Number(retry), 10), MAX_REOPEN_MS)
    }
    const onPart = (part: LargePart): void => {
      isQuiet = false
      if (part.kind === 'start') note(part)
      out.part?.(part)
    }
    events.start({
      onEvent(event) {
        isQuiet &&= event.data === ''
        note(event)
        const passed = rule === undefined ? event : ruled(rule, event)
        if (passed !== undefined) passEvent(run, target, passed, out)
      },
      ...(!run.config.isMultiplexing && out.part !== undefined && rule === undefined && { onPart, largeFrom: PASSED_CHARS }),
      onEnd,
      onError: onEnd,
    })
  }
  const reopen = (target: Target, place: ResumePoint): void => {
    const exchange = run.exchange.fork(run.exchange.request)
    const opening: EventSource = {
      start() {},
      pause() {},
      resume() {},
      cancel() {
        clearTimeout(timer)
        exchange.abort(new Error('the stream was closed'))
      },
    }
    const timer = setTimeout(() => {
      openAgain({ ...run, exchange }, target, place.lastEventId)
        .then(
          (events) => {
            open++
            attach(target, events, place)
          },
          (error: Error) => {
            // Clients without sessions have none that could be over: the next attempt starts one with the target.
            if (isSessionOver(error) && run.linkOf === undefined) out.end()
            else if (!hasNoStream(error) && !flow.isClosed) reopen(target, { ...place, delayMs: Math.min(place.delayMs * 2, MAX_REOPEN_MS) })
          },
        )
        .finally(() => flow.remove(opening))
    }, place.delayMs)
    flow.add(opening)
  }
  for (const { target, events } of streams) attach(target, events, { lastEventId: undefined, delayMs: REOPEN_MS })
  // A single target that returned no stream has no messages.
  if (streams.length === 0 && !run.config.isFailOpen) out.end()
  return flow
}

async function openAgain(run: Run, target: Target, lastEventId: string | undefined): Promise<EventSource> {
  const { answer } = await listenToOne(run, target, lastEventId)
  if (answer.kind === 'events') return answer.events
  discard(answer)
  if (answer.kind === 'refused') throw new RefusedError(target.name, answer.response)
  throw McpFailure.method('POST')
}

/** The target offers no stream. */
const hasNoStream = (error: Error): boolean =>
  (error instanceof RefusedError && error.response.status === 405) || (error instanceof McpFailure && error.status === 405)

/** Handles the responses on the stream of a single target: those of requests whose own stream ended. */
interface ResponseRule {
  /** Responses that may not pass unchecked are dropped: results of tools with guards or hooks, lists of tools with pins or hooks. */
  readonly isDropped: (message: RpcMessage) => boolean
  readonly change: ChangeAnswer | undefined
}

/** Undefined if responses pass unread. With several targets, no response passes. */
function responseRule(run: Run, target: Target): ResponseRule | undefined {
  const { pins, isMultiplexing } = run.config
  if (isMultiplexing) return undefined
  const isGuarded = checksResults(run, target)
  const checksLists = pins !== undefined || run.hooks?.changesLists === true
  const change = changeOfLists(run, target)
  if (!isGuarded && !checksLists && change === undefined) return undefined
  return {
    isDropped: ({ result }) => isGuarded || (checksLists && isObject(result) && result['tools'] !== undefined),
    change,
  }
}

/** The event for the client; undefined if it is dropped. A text that is no message could hold a response, such as a batch. */
function ruled({ isDropped, change }: ResponseRule, event: SseEvent): SseEvent | undefined {
  if (event.data === '') return event
  const message = parseUpstreamMessage(event.data)
  if (message === undefined) return undefined
  if (!isResponse(message)) return event
  if (isDropped(message)) return undefined
  try {
    const changed = change?.(message) ?? message
    return changed === message ? event : { ...event, data: toText(changed) }
  } catch {
    return undefined
  }
}

function passEvent(run: Run, target: Target, event: SseEvent, out: EventOutput): void {
  if (!mayBeMapped(run, event.data)) return out.write(event)
  const message = event.data === '' ? undefined : parseUpstreamMessage(event.data)
  const place = run.config.isMultiplexing ? {} : { id: event.id, retry: event.retry }
  const mapped = message && mapServerMessage(run, target, message)
  if (mapped !== undefined) out.write({ ...place, data: mapped === message ? event.data : toText(mapped) })
  else if (!run.config.isMultiplexing) out.write(event)
}
