import { BufferBody } from '../../../http/body.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { CancelledError } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { clientMeta, isLevel, modernErrorIn, toLegacyMessage, withMeta, withoutTaskExtension, type SessionClient } from '../message/modern.ts'
import { mayHaveParamHeaders, paramHeaders } from '../message/param-headers.ts'
import {
  errorText,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  isAnswerTo,
  isNotification,
  METHOD_NOT_FOUND,
  parseUpstreamMessage,
  resultText,
  toText,
  type RpcId,
  type RpcMessage,
} from '../message/rpc.ts'
import { spliceMeta } from '../message/splice.ts'
import type { SseEvent } from '../sse/parser.ts'
import type { EventSink, EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import { EndpointGoneError, messageLimit, type CallContext, type MessageLabel } from './call.ts'
import type { Link, LinkAnswer, LinkState } from './link.ts'
import type { ServerMemory } from './memory.ts'
import { modernLink } from './modern-link.ts'
import { deliverInput, hasRounds, inputRequired, roundsOf, type RoundContext } from './rounds.ts'
import { cancelCall, StartedCall } from './started-call.ts'

/** Rejections of a server of the revision; those of older servers have these statuses too. */
const REJECTIONS: ReadonlySet<number> = new Set([400, 404, 405])
const MAX_REFUSAL_BYTES = 64 * 1024
/** Id of the request of `listenText`. */
export const LISTEN_ID = 'proxy_listen'

/** Link of a client with sessions to a target without (mcp.md §13.4). `client` is what the client said at `initialize`. */
export function upgradedLink(target: Target, state: LinkState, client: SessionClient, memory: ServerMemory): Link {
  const plain = modernLink(target, state, memory, { addsParams: true })
  const send = (context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer> =>
    plain.post(context, withClient(context, text, client, state.logLevel), label)
  return {
    async post(outer, text, label) {
      const { method, id } = label
      if (method === 'notifications/cancelled') cancelCall(state, parseUpstreamMessage(text)?.params?.['requestId'])
      if (method === undefined) deliverInput(state, text)
      // The target has no session that notifications or responses could refer to.
      if (method === undefined || id === undefined) return { kind: 'accepted' }
      const own = answerItself(state, method, text)
      if (own !== undefined) return jsonOf(own)
      const call = new StartedCall(state, id)
      const context: CallContext = { ...outer, cancellation: call.cancellation }
      const rounds: RoundContext = {
        state,
        id,
        text,
        send: (retry, retryId) => send(context, retry, { ...label, id: retryId }),
        read: (refused) => textIn(target, context, refused),
        capabilities: client.capabilities,
        convert: (message) => toLegacyMessage(method, message),
      }
      const withRounds = async (sent: LinkAnswer): Promise<LinkAnswer> => {
        if (sent.kind === 'events') return { kind: 'events', events: roundsOf(rounds, sent.events) }
        if (sent.kind !== 'json') return readable(target, { method, id }, context, sent)
        const body = await textIn(target, context, sent)
        const message = parseUpstreamMessage(body)
        if (message === undefined) return jsonOf(body)
        if (!isAnswerTo(message, id)) return jsonOf(otherAnswer(id))
        return inputRequired(message) === undefined ? jsonOf(toText(toLegacyMessage(method, message))) : { kind: 'events', events: roundsOf(rounds, message) }
      }
      let answer: LinkAnswer | undefined
      try {
        const sent = await send(context, text, label)
        answer = hasRounds(method) ? await withRounds(sent) : await readable(target, { method, id }, context, sent)
      } catch (error) {
        throw call.causeOf(error)
      } finally {
        if (answer?.kind !== 'events') call.end()
      }
      return answer.kind === 'events' ? { kind: 'events', events: streamOf(call, answer.events) } : answer
    },
    async listen(context) {
      const open = async (): Promise<EventSource | ResponseHead> => {
        const answer = await send(context, listenText(state), { method: 'subscriptions/listen', id: LISTEN_ID })
        if (answer.kind === 'events') return answer.events
        return answer.kind === 'refused' && !REJECTIONS.has(answer.response.status) ? answer.response : noStream(answer)
      }
      const first = await open()
      if ('status' in first) return { kind: 'refused', response: first }
      return { kind: 'events', events: subscribed(state, first, open) }
    },
    async end() {},
  }
}

/** What is added to requests of a client, and its JSON. */
interface ClientMeta {
  readonly logLevel: string | undefined
  readonly meta: JsonObject
  readonly text: string
}

const clientMetas = new WeakMap<SessionClient, ClientMeta>()

function metaOf(client: SessionClient, logLevel: string | undefined): ClientMeta {
  const known = clientMetas.get(client)
  if (known !== undefined && known.logLevel === logLevel) return known
  const meta = clientMeta({ ...client, capabilities: withoutTaskExtension(client.capabilities) }, logLevel)
  const made = { logLevel, meta, text: JSON.stringify(meta) }
  clientMetas.set(client, made)
  return made
}

/** A request with what each request says about its client. That of the client is not parsed again. */
function withClient({ received }: CallContext, text: string, client: SessionClient, logLevel: string | undefined): string {
  const { meta, text: metaText } = metaOf(client, logLevel)
  return (received?.text === text ? spliceMeta(text, received.message, metaText) : undefined) ?? withMeta(text, meta)
}

/** Methods that the revision does not have: the response to them; undefined if the target has the method. */
function answerItself(state: LinkState, method: string, text: string): string | undefined {
  const request = ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'].includes(method) ? parseUpstreamMessage(text) : undefined
  if (method.startsWith('tasks/')) return errorText(parseUpstreamMessage(text)?.id, METHOD_NOT_FOUND, `Method not found: ${method}`)
  if (request?.id === undefined) return undefined
  const { level, uri } = request.params ?? {}
  if (method === 'logging/setLevel' && isLevel(level)) state.logLevel = level
  if (method.startsWith('resources/') && typeof uri === 'string') {
    const uris = (state.subscriptions ??= new Set())
    if (method === 'resources/unsubscribe') uris.delete(uri)
    else if (uris.size < MAX_SUBSCRIPTIONS && uri.length <= MAX_URI_CHARS) uris.add(uri)
    else
      return errorText(request.id, INVALID_PARAMS, `a session has at most ${MAX_SUBSCRIPTIONS} subscriptions, with URIs of at most ${MAX_URI_CHARS} characters`)
    state.onSubscribe?.()
  }
  return resultText(request.id, {})
}

const MAX_SUBSCRIPTIONS = 1000
const MAX_URI_CHARS = 4096

const jsonOf = (text: string): LinkAnswer => ({ kind: 'json', body: new BufferBody(text) })

/** The response to a request in the form of revisions with sessions. */
async function readable(target: Target, { method, id }: { method: string; id: RpcId }, context: CallContext, answer: LinkAnswer): Promise<LinkAnswer> {
  const convert = (text: string): string | undefined => {
    const message = parseUpstreamMessage(text)
    if (message === undefined || isNotification(message)) return text
    // A request, which the revision does not have, or the response to another request.
    if (!isAnswerTo(message, id)) return undefined
    const legacy = toLegacyMessage(method, message)
    return toText(method === 'tools/list' && mayHaveParamHeaders(text) ? withoutInvalidParams(legacy) : legacy)
  }
  if (answer.kind === 'accepted' || (answer.kind === 'refused' && !REJECTIONS.has(answer.response.status))) return answer
  if (answer.kind === 'events') return { kind: 'events', events: mapped(answer.events, (event) => toEvent(convert(event.data))) }
  return jsonOf(convert(await textIn(target, context, answer)) ?? otherAnswer(id))
}

const otherAnswer = (id: RpcId): string => errorText(id, INTERNAL_ERROR, 'an upstream responded to another request')

const toEvent = (data: string | undefined): SseEvent | undefined => (data === undefined ? undefined : { data })

/** Clients of the revision do not offer a tool whose schema breaks the rules for headers of arguments. Older ones do not know them. */
function withoutInvalidParams(message: RpcMessage): RpcMessage {
  const { result } = message
  if (!isObject(result) || !Array.isArray(result['tools'])) return message
  const tools = result['tools'].filter((tool: unknown) => !isObject(tool) || paramHeaders(tool['inputSchema']) !== undefined)
  return { ...message, result: { ...result, tools } }
}

/** The text of the message in a body: that of a response, or of a rejection with an error of the revision. */
async function textIn(target: Target, context: CallContext, answer: LinkAnswer): Promise<string> {
  if (answer.kind === 'json') return (await readHeldBody(context.exchange, answer.body, messageLimit(context))).bytes.toString()
  const body = answer.kind === 'refused' ? answer.response.body : undefined
  const text = (await readHeldBody(undefined, body, MAX_REFUSAL_BYTES)).bytes.toString()
  if (modernErrorIn(text) !== undefined) return text
  throw new EndpointGoneError(`${target.name} does not speak the revision that it spoke at the start of the session`)
}

/** The notifications of a stream of `subscriptions/listen`. */
export const notificationsOf = (source: EventSource): EventSource => mapped(source, toNotification)

/** Events changed on their way; those without a result are dropped. */
function mapped(source: EventSource, map: (event: SseEvent) => SseEvent | undefined): EventSource {
  return {
    ...source,
    start(sink) {
      source.start({
        onEvent(event) {
          const changed = event.data === '' ? undefined : map(event)
          // Streams of the revision cannot be resumed.
          if (changed !== undefined) sink.onEvent({ data: changed.data })
        },
        onEnd: () => sink.onEnd(),
        onError: (error) => sink.onError(error),
      })
    },
  }
}

/** The stream of the response to a call, which ends when the client cancels the call. */
function streamOf(call: StartedCall, source: EventSource): EventSource {
  return {
    pause: () => source.pause(),
    resume: () => source.resume(),
    start: (sink) => {
      // The stream to the client ends first: it must not report that of the target as broken.
      call.onCancel = () => {
        call.end()
        source.cancel()
        sink.onError(new CancelledError('the client cancelled the request'))
      }
      if (call.cancellation.aborted) return call.onCancel()
      source.start({
        onEvent: (event) => sink.onEvent(event),
        onEnd: () => {
          call.end()
          sink.onEnd()
        },
        onError: (error) => {
          call.end()
          sink.onError(error)
        },
      })
    },
    cancel: () => {
      call.end()
      source.cancel()
    },
  }
}

/** The request for all notifications. The target acknowledges those that it has. */
export function listenText({ subscriptions, taskIds }: Pick<LinkState, 'subscriptions'> & { readonly taskIds?: ReadonlySet<string> | undefined }): string {
  const notifications = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    ...(subscriptions !== undefined && subscriptions.size > 0 && { resourceSubscriptions: [...subscriptions] }),
    ...(taskIds !== undefined && taskIds.size > 0 && { taskIds: [...taskIds] }),
  }
  return toText({ jsonrpc: '2.0', id: LISTEN_ID, method: 'subscriptions/listen', params: { notifications } })
}

/** The response for a target without such a stream: 405, as of servers of older revisions. */
function noStream(answer: LinkAnswer): ResponseHead {
  if (answer.kind === 'json') answer.body.cancel()
  if (answer.kind === 'refused') answer.response.body?.cancel()
  return { status: 405, headers: new HeaderList(['allow', 'POST', 'content-length', '0']), body: undefined, upgraded: undefined }
}

/** A notification as revisions with sessions know it; undefined for the messages about the stream itself. */
function toNotification({ data }: SseEvent): SseEvent | undefined {
  const message = parseUpstreamMessage(data)
  if (message?.method === undefined || message.method === 'notifications/subscriptions/acknowledged') return undefined
  return { data: toText(withoutMeta(message)) }
}

function withoutMeta(message: RpcMessage): RpcMessage {
  const { _meta: _, ...params } = isObject(message.params) ? message.params : {}
  const { params: _params, ...rest } = message
  return Object.keys(params).length === 0 ? rest : { ...rest, params }
}

/** The client's stream of notifications. A change of the subscribed resources replaces the target's stream. */
function subscribed(state: LinkState, first: EventSource, open: () => Promise<EventSource | ResponseHead>): EventSource {
  let current = first
  let sink: EventSink | undefined
  let isClosed = false
  let isOpening = false
  let isStale = false
  const attach = (source: EventSource): void => {
    current = source
    notificationsOf(source).start({
      onEvent: (event) => sink?.onEvent(event),
      onEnd: () => finish(source, () => sink?.onEnd()),
      onError: (error) => finish(source, () => sink?.onError(error)),
    })
  }
  // The end of a replaced stream is not that of the client's stream.
  const finish = (source: EventSource, report: () => void): void => {
    if (source !== current || isClosed) return
    isClosed = true
    report()
  }
  const replace = async (): Promise<void> => {
    isStale = true
    if (isOpening) return
    isOpening = true
    while (isStale && !isClosed) {
      isStale = false
      const opened = await open().catch(() => undefined)
      if (opened === undefined || 'status' in opened) {
        if (opened !== undefined) opened.body?.cancel()
        break
      }
      if (isClosed) opened.cancel()
      else {
        const old = current
        attach(opened)
        old.cancel()
      }
    }
    isOpening = false
  }
  const onSubscribe = (): void => void replace()
  return {
    start(receiver) {
      sink = receiver
      state.onSubscribe = onSubscribe
      attach(first)
    },
    pause: () => current.pause(),
    resume: () => current.resume(),
    cancel() {
      isClosed = true
      if (state.onSubscribe === onSubscribe) state.onSubscribe = undefined
      current.cancel()
    },
  }
}
