import { ProxyError } from '../../../request/exchange/error.ts'
import { McpFailure, UpstreamRpcError } from '../message/failure.ts'
import { Flow, type EventOutput, type Reply } from '../message/reply.ts'
import { mapServerMessage } from './reverse.ts'
import { discard, labelOf, post, readInTime, RefusedError, toFailure, type Run } from './run.ts'
import { answerText, errorText, INTERNAL_ERROR, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { Target } from '../target/target.ts'
import type { LinkAnswer } from '../upstream/link.ts'

/** The contribution of one target. */
export interface Gathered<T> {
  readonly target: Target
  readonly value: T
}

/** How the results of several targets are read and merged. */
export interface Gathering<T> {
  /** Reads a target's contribution. `first` is its response to the request. Rejects with an UpstreamRpcError or a McpFailure. */
  read(target: Target, first: RpcMessage, onOther: (message: RpcMessage) => void, flow: Flow): Promise<T>
  /** Whether an error of the target counts as an empty contribution. Default: false. */
  isOptional?(target: Target): boolean
  /** The result as JSON. Contributions are in the order of the targets. Rejects with the error for the client. */
  merge(gathered: readonly Gathered<T>[]): string | Promise<string>
}

/** A target and its response, not read yet. */
export interface Answered {
  readonly target: Target
  readonly answer: LinkAnswer
}

/** Reported to the client even by optional targets: the session ended, or credentials are missing. */
const REPORTED_STATUSES: ReadonlySet<number> = new Set([401, 403, 404])

/** Sends a request to several targets in parallel and merges their results (mcp.md §4.4). The response head follows all of theirs. */
export async function gather<T>(run: Run, targets: readonly Target[], request: RpcRequest, text: string, gathering: Gathering<T>): Promise<Reply> {
  const answered = await callAll(run, targets, async (target) => {
    const answer = await post(run, target, text, labelOf(request))
    if (answer.kind !== 'refused' || gathering.isOptional?.(target) !== true || REPORTED_STATUSES.has(answer.response.status)) return answer
    discard(answer)
    return { kind: 'accepted' }
  })
  const { trace } = run.exchange
  const missing = trace === undefined ? [] : targets.filter((target) => !answered.some((one) => one.target === target))
  for (const { name } of missing) trace?.addHidden({ kind: 'target', target: name, name }, 'the target did not respond (failureMode FailOpen)')
  return {
    kind: 'stream',
    feed(out) {
      const flow = new Flow()
      void mergeInto(run, answered, request, gathering, flow, out)
      return flow
    },
  }
}

/** The responses of all targets; with FailOpen, of those that responded. Rejects with the error for the client. */
export async function callAll(run: Run, targets: readonly Target[], call: (target: Target) => Promise<LinkAnswer>): Promise<Answered[]> {
  const { isFailOpen } = run.config
  let hasFailed = false
  const outcomes = targets.map(async (target): Promise<Answered | Error> => {
    try {
      const answer = await call(target)
      if (hasFailed) discard(answer)
      return answer.kind === 'refused' ? new RefusedError(target.name, answer.response) : { target, answer }
    } catch (error) {
      return toFailure(run, target, error)
    }
  })
  // With FailClosed, the first failure decides: do not wait for slow targets.
  const settled = isFailOpen ? await Promise.all(outcomes) : await firstFailureOrAll(outcomes)
  const answered = settled.filter((outcome): outcome is Answered => !(outcome instanceof Error))
  const isOver = (outcome: Error): boolean => run.session.id !== undefined && isSessionOver(outcome)
  const failure = settled.find((outcome) => outcome instanceof Error && (!isFailOpen || answered.length === 0 || isOver(outcome)))
  if (failure instanceof Error) {
    hasFailed = true
    for (const { answer } of answered) discard(answer)
    throw failure
  }
  for (const outcome of settled) if (outcome instanceof RefusedError) outcome.response.body?.cancel()
  return answered
}

/** Whether the target lost its session: it responds only in a new one. */
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
      const first = await readInTime(run, target, answer, request.id, flow, onOther)
      return { target, value: await gathering.read(target, first, onOther, flow) }
    } catch (error) {
      if (gathering.isOptional?.(target) === true && !(error instanceof ProxyError)) return undefined
      const failure = toFailure(run, target, error)
      failures.push(failure)
      run.exchange.trace?.addHidden({ kind: 'target', target: target.name, name: target.name }, `the target failed: ${failure.message}`)
      if (!run.config.isFailOpen) throw error
      return undefined
    }
  }
  try {
    const gathered = (await Promise.all(answered.map(read))).filter((one) => one !== undefined)
    if (gathered.length === 0 && failures[0] !== undefined) throw failures[0]
    out.send(answerText(request.id, await gathering.merge(gathered)))
  } catch (error) {
    out.send(reportFailure(run, request, failures[0] ?? error))
  } finally {
    flow.onClose()
    out.end()
  }
}

/** Records a failure of a request whose response head was sent, and returns it as a JSON-RPC error. */
export function reportFailure(run: Run, request: RpcRequest, error: unknown): string {
  const text = failureText(request, error)
  run.onAnswer?.(JSON.parse(text) as RpcMessage)
  if (error instanceof McpFailure && error.rpc !== undefined) run.onFailure?.(error.rpc.code, error.detail)
  if (error instanceof RefusedError) run.onFailure?.(INTERNAL_ERROR, error.message)
  if (error instanceof ProxyError) run.onFailure?.(INTERNAL_ERROR, error.row.text)
  return text
}

/** A failure as a JSON-RPC error, for streams whose head was sent already. */
export function failureText({ id }: RpcRequest, error: unknown): string {
  if (error instanceof UpstreamRpcError) return toText({ ...error.rpc, id })
  if (error instanceof McpFailure) return errorText(id, error.rpc?.code ?? INTERNAL_ERROR, error.message)
  if (error instanceof RefusedError) return errorText(id, INTERNAL_ERROR, `an upstream responded with status ${error.response.status}`)
  if (error instanceof ProxyError) return errorText(id, INTERNAL_ERROR, error.row.text)
  return errorText(id, INTERNAL_ERROR, 'internal error')
}
