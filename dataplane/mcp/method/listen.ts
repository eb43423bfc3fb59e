import { McpFailure } from '../message/failure.ts'
import { askAll, isSessionOver } from '../run/gather.ts'
import { Flow, type EventOutput, type Reply } from '../message/reply.ts'
import { mapServerMessage, mayBeMapped } from '../run/reverse.ts'
import { discard, linkTo, RefusedError, stateOf, toFailure, type Run } from '../run/run.ts'
import { parseUpstreamMessage, toText } from '../message/rpc.ts'
import type { SseEvent } from '../sse/parser.ts'
import type { EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import type { LinkAnswer } from '../upstream/link.ts'

/** The stream of what servers send by themselves (GET). With one target, the place to resume from is its own (decision D5). `isEndless`: the client cannot ask again. */
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

/** Targets that have no such stream are left out; all of them: 405. */
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
    const answered = await askAll(run, there, ask)
    if (without === there.length) throw McpFailure.method('POST, DELETE', 'no upstream offers a stream of its own messages')
    return answered
  } catch (error) {
    // With nothing to say, an open stream keeps clients from trying again and again.
    const isBearable =
      config.isFailOpen && !(error instanceof McpFailure && error.rpc === undefined) && !(error instanceof RefusedError && error.response.status === 404)
    if (isBearable) return []
    throw error
  }
}

/** Where a target's stream is to go on, and when. */
interface Place {
  lastEventId: string | undefined
  delayMs: number
}

/** Unless the target says otherwise (`retry`), and no more than. */
const REOPEN_MS = 1000
const MAX_REOPEN_MS = 30_000

/**
 * One stream of all. A target's stream that ends is opened again while there are others: the client sees no end, so it would not ask.
 * The last one ends the client's, unless that `isEndless`.
 */
function feedAll(run: Run, answers: readonly Listened[], out: EventOutput, isEndless: boolean): Flow {
  const flow = new Flow()
  const streams = answers.flatMap(({ target, answer }) => (answer.kind === 'events' ? [{ target, events: answer.events }] : []))
  let open = streams.length
  const attach = (target: Target, events: EventSource, place: Place): void => {
    let isQuiet = true
    const onEnd = (): void => {
      flow.remove(events)
      if (--open === 0 && !isEndless) return out.end()
      reopen(target, { ...place, delayMs: isQuiet ? Math.min(place.delayMs * 2, MAX_REOPEN_MS) : place.delayMs })
    }
    flow.add(events)
    events.start({
      onEvent(event) {
        isQuiet &&= event.data === ''
        if (event.id !== undefined) place.lastEventId = event.id
        if (event.retry !== undefined) place.delayMs = Math.min(Math.max(Number(event.retry), 10), MAX_REOPEN_MS)
        passEvent(run, target, event, out)
      },
      onEnd,
      onError: onEnd,
    })
  }
  const reopen = (target: Target, place: Place): void => {
    const exchange = run.exchange.fork(run.exchange.request)
    const opening: EventSource = {
      start() {},
      pause() {},
      resume() {},
      cancel() {
        clearTimeout(timer)
        exchange.abort(new Error('nobody listens any more'))
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
            if (isSessionOver(error)) out.end()
            else if (!isWithout(error) && !flow.isClosed) reopen(target, { ...place, delayMs: Math.min(place.delayMs * 2, MAX_REOPEN_MS) })
          },
        )
        .finally(() => flow.remove(opening))
    }, place.delayMs)
    flow.add(opening)
  }
  for (const { target, events } of streams) attach(target, events, { lastEventId: undefined, delayMs: REOPEN_MS })
  // A single target that answered something else than a stream has nothing to say.
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

/** The target offers no stream, or none any more. */
const isWithout = (error: Error): boolean =>
  (error instanceof RefusedError && error.response.status === 405) || (error instanceof McpFailure && error.status === 405)

function passEvent(run: Run, target: Target, event: SseEvent, out: EventOutput): void {
  if (!mayBeMapped(run, event.data)) return out.write(event)
  const message = event.data === '' ? undefined : parseUpstreamMessage(event.data)
  const place = run.config.isMultiplexing ? {} : { id: event.id, retry: event.retry }
  const mapped = message && mapServerMessage(run, target, message)
  if (mapped !== undefined) out.write({ ...place, data: mapped === message ? event.data : toText(mapped) })
  else if (!run.config.isMultiplexing) out.write(event)
}
