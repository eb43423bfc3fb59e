import { ProxyError } from '../../exchange/error.ts'
import { McpFailure, UpstreamRpcError } from '../message/failure.ts'
import { Flow, type EventOutput, type Reply } from '../message/reply.ts'
import { mapServerMessage } from './reverse.ts'
import { discard, post, readAnswer, RefusedError, toFailure, type Run } from './run.ts'
import { answerText, errorText, INTERNAL_ERROR, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { Target } from '../target/target.ts'
import type { LinkAnswer } from '../upstream/link.ts'

/** What one target contributed. */
export interface Gathered<T> {
  readonly target: Target
  readonly value: T
}

export interface Gathering<T> {
  /** What a target contributes, `first` being its answer; rejects with an UpstreamRpcError or a McpFailure. */
  read(target: Target, first: RpcMessage, onOther: (message: RpcMessage) => void, flow: Flow): Promise<T>
  /** Whether a target that refuses has nothing to contribute, rather than a failure. Default: none. */
  isOptional?(target: Target): boolean
  /** The result as JSON, from what came in the order of the targets. */
  merge(gathered: readonly Gathered<T>[]): string
}

/** A target and its answer, not read yet. */
export interface Answered {
  readonly target: Target
  readonly answer: LinkAnswer
}

/** Of a session that is over, and of credentials that are missing: the client is to know. */
const LOUD_STATUSES: ReadonlySet<number> = new Set([401, 403, 404])

/** Asks several targets at once and merges what they say (mcp.md §4.4). The response's head goes out once all of theirs are there. */
export async function gather<T>(run: Run, targets: readonly Target[], request: RpcRequest, text: string, gathering: Gathering<T>): Promise<Reply> {
  const answered = await askAll(run, targets, async (target) => {
    const answer = await post(run, target, text, { method: request.method, id: request.id })
    if (answer.kind !== 'refused' || gathering.isOptional?.(target) !== true || LOUD_STATUSES.has(answer.response.status)) return answer
    discard(answer)
    return { kind: 'accepted' }
  })
  return {
    kind: 'stream',
    feed(out) {
      const flow = new Flow()
      void mergeInto(run, answered, request, gathering, flow, out)
      return flow
    },
  }
}

/** The answers of all targets; with FailOpen, of those that gave one. Rejects with what the client is to be told. */
export async function askAll(run: Run, targets: readonly Target[], ask: (target: Target) => Promise<LinkAnswer>): Promise<Answered[]> {
  const { isFailOpen } = run.config
  let isGivenUp = false
  const outcomes = targets.map(async (target): Promise<Answered | Error> => {
    try {
      const answer = await ask(target)
      if (isGivenUp) discard(answer)
      return answer.kind === 'refused' ? new RefusedError(target.name, answer.response) : { target, answer }
    } catch (error) {
      return toFailure(run, target, error)
    }
  })
  // One failure is enough for FailClosed: the slow ones are not waited for.
  const settled = isFailOpen ? await Promise.all(outcomes) : await firstFailureOrAll(outcomes)
  const answered = settled.filter((outcome): outcome is Answered => !(outcome instanceof Error))
  const isOver = (outcome: Error): boolean => run.session.id !== undefined && isSessionOver(outcome)
  const failure = settled.find((outcome) => outcome instanceof Error && (!isFailOpen || answered.length === 0 || isOver(outcome)))
  if (failure instanceof Error) {
    isGivenUp = true
    for (const { answer } of answered) discard(answer)
    throw failure
  }
  for (const outcome of settled) if (outcome instanceof RefusedError) outcome.response.body?.cancel()
  return answered
}

/** A target that lost its session answers again only in a new one. */
export const isSessionOver = (error: Error): boolean =>
  (error instanceof RefusedError && error.response.status === 404) || (error instanceof McpFailure && error.status === 404)

function firstFailureOrAll(outcomes: readonly Promise<Answered | Error>[]): Promise<(Answered | Error)[]> {
  return new Promise((resolve, reject) => {
    const known: (Answered | Error)[] = []
    for (const outcome of outcomes)
      outcome.then((value) => {
        if (value instanceof Error) resolve([...known, value])
        else known.push(value)
      }, reject)
    Promise.all(outcomes).then(resolve, reject)
  })
}

async function mergeInto<T>(
  run: Run,
  answered: readonly Answered[],
  request: RpcRequest,
  gathering: Gathering<T>,
  flow: Flow,
  out: EventOutput,
): Promise<void> {
  const failures: Error[] = []
  const read = async ({ target, answer }: Answered): Promise<Gathered<T> | undefined> => {
    const onOther = (message: RpcMessage): void => {
      const mapped = mapServerMessage(run, target, message)
      if (mapped !== undefined) out.send(toText(mapped))
    }
    try {
      const first = await readAnswer(target, answer, request.id, flow, onOther)
      return { target, value: await gathering.read(target, first, onOther, flow) }
    } catch (error) {
      if (gathering.isOptional?.(target) === true && !(error instanceof ProxyError)) return undefined
      failures.push(toFailure(run, target, error))
      if (!run.config.isFailOpen) throw error
      return undefined
    }
  }
  try {
    const gathered = (await Promise.all(answered.map(read))).filter((one) => one !== undefined)
    if (gathered.length === 0 && failures[0] !== undefined) throw failures[0]
    out.send(answerText(request.id, gathering.merge(gathered)))
  } catch (error) {
    const text = failureText(request, failures[0] ?? error)
    run.onAnswer?.(JSON.parse(text) as RpcMessage)
    out.send(text)
  } finally {
    flow.onClose()
    out.end()
  }
}

/** A failure as the answer to a request, for a stream that has begun. */
export function failureText({ id }: RpcRequest, error: unknown): string {
  if (error instanceof UpstreamRpcError) return toText({ ...error.rpc, id })
  if (error instanceof McpFailure || error instanceof RefusedError || error instanceof ProxyError)
    return errorText(id, (error instanceof McpFailure ? error.rpc?.code : undefined) ?? INTERNAL_ERROR, error.message)
  return errorText(id, INTERNAL_ERROR, 'internal error')
}
