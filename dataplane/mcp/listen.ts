import { McpFailure } from './failure.ts'
import { askAll } from './gather.ts'
import { Flow, type EventOutput, type Reply } from './reply.ts'
import { mapServerMessage, mapsServerMessages } from './reverse.ts'
import { linkTo, RefusedError, stateOf, toFailure, type Run } from './run.ts'
import { parseUpstreamMessage, toText } from './rpc.ts'
import type { SseEvent } from './sse/parser.ts'
import type { Target } from './target.ts'
import type { LinkAnswer } from './upstream/link.ts'

/** The stream of what servers send by themselves (GET). With one target, the place to resume from is its own (decision D5). */
export async function listen(run: Run, lastEventId: string | undefined): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  const answers = config.isMultiplexing ? await listenToAll(run) : sole === undefined ? [] : [await listenToOne(run, sole, lastEventId)]
  const [first] = answers
  if (!config.isMultiplexing && first?.answer.kind === 'refused') return { kind: 'relay', response: first.answer.response }
  return { kind: 'stream', feed: (out) => feedAll(run, answers, out) }
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
    if (without === there.length) throw McpFailure.text(405, 'no upstream offers a stream of its own messages')
    return answered
  } catch (error) {
    // With nothing to say, an open stream keeps clients from trying again and again.
    const isBearable =
      config.isFailOpen && !(error instanceof McpFailure && error.rpc === undefined) && !(error instanceof RefusedError && error.response.status === 404)
    if (isBearable) return []
    throw error
  }
}

function feedAll(run: Run, answers: readonly Listened[], out: EventOutput): Flow {
  const flow = new Flow()
  const streams = answers.flatMap(({ target, answer }) => (answer.kind === 'events' ? [{ target, events: answer.events }] : []))
  let open = streams.length
  const close = (): void => {
    if (--open === 0) out.end()
  }
  for (const { target, events } of streams) {
    flow.add(events)
    events.start({ onEvent: (event) => passEvent(run, target, event, out), onEnd: close, onError: close })
  }
  // A single target that answered something else than a stream has nothing to say.
  if (streams.length === 0 && !run.config.isFailOpen) out.end()
  return flow
}

function passEvent(run: Run, target: Target, event: SseEvent, out: EventOutput): void {
  if (!mapsServerMessages(run)) return out.write(event)
  const message = event.data === '' ? undefined : parseUpstreamMessage(event.data)
  const place = run.config.isMultiplexing ? {} : { id: event.id, retry: event.retry }
  const mapped = message && mapServerMessage(run, target, message)
  if (mapped !== undefined) out.write({ ...place, data: mapped === message ? event.data : toText(mapped) })
  else if (!run.config.isMultiplexing) out.write(event)
}
