import type { Exchange } from '../../../request/exchange/exchange.ts'
import { bodyHold } from '../../../request/exchange/held.ts'
import { MAX_BUFFER_BYTES } from '../../../request/expression/buffer.ts'
import { BufferBody, type Body } from '../../../http/body.ts'
import { ObservedBody } from '../../../http/observe.ts'
import { MODERN_VERSION, statusOf } from '../message/modern.ts'
import { PASSED_CHARS, streamOf, Flow, type EventOutput, type Reply } from '../message/reply.ts'
import { mapServerMessage, mayBeMapped } from './reverse.ts'
import { brokenAnswer, endedAnswer, labelOf, post, readAnswer, type Run } from './run.ts'
import { idKey, isAnswerTo, isResponse, isSuccess, parseUpstreamMessage, toText, type RpcId, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { ProxyError } from '../../../request/exchange/error.ts'
import { CancelledError, type McpFailure } from '../message/failure.ts'
import { reportFailure } from './gather.ts'
import { MessageOutline } from '../sse/outline.ts'
import type { LargePart, SseEvent } from '../sse/parser.ts'
import type { EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import type { LinkAnswer } from '../upstream/link.ts'

/** Changes the response to a request. Throws a McpFailure if the response does not match the request. */
export type ChangeAnswer = (message: RpcMessage) => RpcMessage

/** Checks the response to a request before it is logged and changed. Rejects with the error for the client. */
export type CheckAnswer = (message: RpcMessage, exchange: Exchange) => Promise<RpcMessage>

/** How a request to one target is sent. */
export interface CallOptions {
  /** Name or URI of the item, as the target knows it. */
  readonly name?: string
  /** Arguments of a tool, as the target receives them. */
  readonly arguments?: unknown
  readonly change?: ChangeAnswer | undefined
  readonly check?: CheckAnswer | undefined
  /** The response is read before its head is sent, because its error may have an HTTP status. Messages before it are dropped. */
  readonly isWhole?: boolean
}

/** What happens to the response. */
type AnswerOptions = Pick<CallOptions, 'change' | 'check'>

/** Sends a request to one target. Without `change` and `check` and with a single target, bytes pass through unread. */
export async function callOne(
  run: Run,
  target: Target,
  request: RpcRequest,
  text: string,
  { name, arguments: args, isWhole = false, ...options }: CallOptions = {},
): Promise<Reply> {
  const answer = await post(run, target, text, { ...labelOf(request, name), arguments: args })
  switch (answer.kind) {
    case 'refused':
      return { kind: 'relay', response: answer.response }
    case 'events':
      if (isWhole) return messageReply(run, target, request, answer, options)
      return { kind: 'stream', feed: (out) => new PassedEvents(run, target, request, options, out).start(answer.events) }
    case 'accepted':
    case 'json':
      return messageReply(run, target, request, answer, options)
  }
}

async function messageReply(run: Run, target: Target, request: RpcRequest, answer: LinkAnswer, { change, check }: AnswerOptions): Promise<Reply> {
  const { isMultiplexing } = run.config
  if (answer.kind === 'json' && change === undefined && check === undefined && !isMultiplexing)
    return run.isConverted === true ? { kind: 'message', body: answer.body, isUnread: true } : { kind: 'message', body: watched(run, answer.body, request) }
  const received = await readAnswer(run, target, answer, request.id, new Flow(), () => undefined)
  const message = check === undefined ? received : await check(received, run.exchange)
  run.onAnswer?.(message)
  const text = toText(change?.(message) ?? message)
  const hasStatus = run.client !== undefined && statusOf(message.error) !== 200
  return isMultiplexing && !hasStatus ? streamOf([text]) : { kind: 'message', body: new BufferBody(text) }
}

/** Longer responses contain no error. */
const MAX_WATCHED_BYTES = 64 * 1024
const ERROR_MEMBER = '"error"'

/** Whether expressions read the response. */
const readsResult = (run: Run, { method }: RpcRequest): boolean => run.readsResults && method === 'tools/call'

/** Whether an unchanged response must be read for logs and metrics. */
const isLogged = (run: Run, request: RpcRequest, text: { includes(word: string): boolean }): boolean =>
  readsResult(run, request) || text.includes(ERROR_MEMBER) || run.isNewItem()

/** Observes a body that passes through, for logs. */
function watched(run: Run, body: Body, request: RpcRequest): Body {
  const maxBytes = readsResult(run, request) ? (run.maxBufferBytes ?? MAX_BUFFER_BYTES) : MAX_WATCHED_BYTES
  let chunks: Buffer[] | undefined = (body.length ?? 0) > maxBytes ? undefined : []
  const hold = bodyHold(run.exchange)
  let size = 0
  return new ObservedBody(body, {
    onData(chunk) {
      size += chunk.length
      if (chunks === undefined) return
      if (size > maxBytes || hold.reserve(chunk.length) !== undefined) chunks = undefined
      else chunks.push(chunk)
    },
    onClose(error) {
      if (error !== undefined) return
      // Errors are small.
      if (chunks === undefined) return run.onOutcome?.(true)
      const [first] = chunks
      const bytes = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
      if (isLogged(run, request, bytes)) report(run, bytes.toString(), request)
    },
  })
}

/** Time after the response in which the target's stream may end on its own, in milliseconds. */
const END_MS = 1000

/** Whether a text without a method is the response to request `id`, or to another one. Most are not parsed. */
function kindOf(data: string, id: RpcId): 'answer' | 'foreign' | undefined {
  if (data.includes(`"id":${idKey(id)}`)) return 'answer'
  const message = data === '' ? undefined : parseUpstreamMessage(data)
  return message && (isAnswerTo(message, id) ? 'answer' : 'foreign')
}

/** The event stream of a target's response on its way to the client. */
class PassedEvents {
  readonly #run: Run
  readonly #target: Target
  readonly #request: RpcRequest
  readonly #change: ChangeAnswer | undefined
  readonly #check: CheckAnswer | undefined
  readonly #out: EventOutput
  readonly #isMultiplexing: boolean
  #isAnswered = false
  #isEmpty = true
  #events: EventSource | undefined
  readonly #flow = new Flow()
  /** Ends the target's stream, which may stay open after the response. */
  #timer: NodeJS.Timeout | undefined
  /** The check of the response, while it runs. */
  #checking: Promise<void> | undefined
  /** The client can resume the stream at an event id, or poll if it ends without any event (SEP-1699). Revision 2026-07-28 has neither. */
  readonly #isResumable: boolean
  /** The server gave an event id to resume at. */
  #hasId = false
  #outline: MessageOutline | undefined

  constructor(run: Run, target: Target, request: RpcRequest, { change, check }: AnswerOptions, out: EventOutput) {
    this.#run = run
    this.#target = target
    this.#request = request
    this.#change = change
    this.#check = check
    this.#out = out
    this.#isMultiplexing = run.config.isMultiplexing
    const isLegacy = run.linkOf === undefined && run.session.links.get(target.name)?.version !== MODERN_VERSION
    this.#isResumable = out.isResumable && isLegacy && check === undefined && !this.#isMultiplexing
  }

  start(events: EventSource): Flow {
    const flow = this.#flow
    this.#events = events
    flow.add(events)
    const canPass = this.#change === undefined && this.#check === undefined && !this.#isMultiplexing && this.#out.part !== undefined
    events.start({
      onEvent: (event) => this.#onEvent(event),
      ...(canPass && { onPart: (part) => this.#onPart(part), largeFrom: this.#largeFrom() }),
      onEnd: () => this.#onEnd(),
      onError: (error) => this.#onError(error),
    })
    return flow
  }

  /** Larger events pass in parts, unless the log reads results of tools. */
  #largeFrom(): number {
    return readsResult(this.#run, this.#request) ? Math.max(PASSED_CHARS, this.#run.maxBufferBytes ?? MAX_BUFFER_BYTES) : PASSED_CHARS
  }

  #onPart(part: LargePart): void {
    if (part.kind === 'start') {
      this.#note(part)
      this.#outline = new MessageOutline()
    } else if (part.kind === 'data') this.#outline?.push(part.text)
    const isAnswer = part.kind === 'end' && this.#outline?.hasMethod === false && this.#outline.id === idKey(this.#request.id)
    this.#out.part?.(part)
    if (!isAnswer) return
    this.#run.onOutcome?.(true)
    this.#finish()
  }

  /** The client's stream ends with the response. That of the target usually ends then, too, and its connection can be used again. */
  #finish(): void {
    this.#isAnswered = true
    if (this.#events !== undefined) {
      const events = this.#events
      this.#flow.remove(events)
      this.#timer = setTimeout(() => events.cancel(), END_MS).unref()
    }
    if (this.#checking === undefined) this.#out.end()
  }

  #note({ id }: Omit<SseEvent, 'data'>): void {
    this.#isEmpty = false
    if (id !== undefined) this.#hasId = true
  }

  #onEvent(event: SseEvent): void {
    // A second result, or what else the target sends after the response.
    if (this.#isAnswered) return
    const { data } = event
    this.#note(event)
    if (this.#change === undefined && this.#check === undefined && !mayBeMapped(this.#run, data)) {
      const kind = kindOf(data, this.#request.id)
      if (kind === 'foreign') return
      if (isLogged(this.#run, this.#request, data)) report(this.#run, data, this.#request)
      this.#out.write(event)
      if (kind === 'answer') this.#finish()
      return
    }
    const message = data === '' ? undefined : parseUpstreamMessage(data)
    if (message !== undefined) return this.#pass(event, message)
    // A text that is no message could hold the response unchanged, such as a batch.
    if (!this.#isMultiplexing && this.#check === undefined && (data === '' || this.#change === undefined)) this.#out.write(event)
  }

  #pass(event: SseEvent, message: RpcMessage): void {
    // Event ids of several targets would be ambiguous. A stream that is resumed elsewhere would not be checked.
    const place = this.#isMultiplexing || this.#check !== undefined ? {} : { id: event.id, retry: event.retry }
    if (isAnswerTo(message, this.#request.id)) {
      if (this.#check !== undefined) {
        this.#checking = this.#passChecked(message, this.#check).finally(() => this.#out.end())
        return this.#finish()
      }
      this.#run.onAnswer?.(message)
      this.#out.write({ ...place, data: this.#change === undefined ? event.data : changed(this.#run, message, this.#request, this.#change) })
      return this.#finish()
    }
    // The response to another request, which was not checked as that one is.
    if (isResponse(message)) return
    const mapped = mapServerMessage(this.#run, this.#target, message)
    if (mapped !== undefined) this.#out.write({ ...place, data: mapped === message ? event.data : toText(mapped) })
  }

  async #passChecked(message: RpcMessage, check: CheckAnswer): Promise<void> {
    // `timeouts.request` does not bound the length of a stream.
    const exchange = this.#run.exchange.fork(this.#run.exchange.request)
    this.#run.exchange.onAbort((reason) => exchange.abort(reason))
    try {
      const checked = await check(message, exchange)
      this.#run.onAnswer?.(checked)
      this.#out.send(this.#change === undefined ? toText(checked) : changed(this.#run, checked, this.#request, this.#change))
    } catch (thrown) {
      this.#out.send(reportFailure(this.#run, this.#request, thrown))
    }
  }

  #onEnd(): void {
    clearTimeout(this.#timer)
    if (this.#isAnswered) return
    // A server may end the stream of a call so that the client polls (SEP-1699).
    if (!(this.#isResumable && (this.#hasId || this.#isEmpty))) this.#fail(endedAnswer(this.#target))
    this.#out.end()
  }

  #onError(error: Error): void {
    clearTimeout(this.#timer)
    if (this.#isAnswered) return
    if (error instanceof CancelledError) return this.#out.end()
    if (this.#isResumable && this.#hasId) return this.#out.fail(error)
    this.#fail(brokenAnswer(this.#target, error))
    this.#out.end()
  }

  /** Clients without a timeout would wait for the response for ever. */
  #fail(failure: McpFailure | ProxyError): void {
    this.#out.send(reportFailure(this.#run, this.#request, failure))
  }
}

function changed(run: Run, message: RpcMessage, request: RpcRequest, change: ChangeAnswer): string {
  try {
    return toText(change(message))
  } catch (thrown) {
    return reportFailure(run, request, thrown)
  }
}

/** Records a response that passes unchanged. Results are recorded only if expressions read them. */
function report(run: Run, data: string, request: RpcRequest): void {
  const message = parseUpstreamMessage(data)
  if (message !== undefined) reportMessage(run, message, request)
}

/** As `report`, of a message that was parsed. */
export function reportMessage(run: Run, message: RpcMessage, request: RpcRequest): void {
  if (!isAnswerTo(message, request.id)) return
  if (message.error !== undefined || readsResult(run, request)) run.onAnswer?.(message)
  else run.onOutcome?.(isSuccess(message))
}
