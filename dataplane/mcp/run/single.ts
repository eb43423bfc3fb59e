import { MAX_BUFFER_BYTES } from '../../expression/buffer.ts'
import { BufferBody, type Body } from '../../http/body.ts'
import { ObservedBody } from '../../http/observe.ts'
import { streamOf, Flow, type EventOutput, type Reply } from '../message/reply.ts'
import { mapServerMessage, mayBeMapped } from './reverse.ts'
import { brokenAnswer, isAnswerTo, post, readAnswer, type Run } from './run.ts'
import { errorText, INTERNAL_ERROR, parseUpstreamMessage, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { SseEvent } from '../sse/parser.ts'
import type { Target } from '../target/target.ts'
import type { MessageLabel } from '../upstream/call.ts'
import type { LinkAnswer } from '../upstream/link.ts'

/** Changes the response to a request. Throws a McpFailure if the response does not match the request. */
export type ChangeAnswer = (message: RpcMessage) => RpcMessage

/** Sends a request to one target. Without `change` and with a single target, bytes pass through unread. */
export async function callOne(run: Run, target: Target, request: RpcRequest, text: string, label: MessageLabel, change?: ChangeAnswer): Promise<Reply> {
  const answer = await post(run, target, text, { ...label, id: request.id })
  switch (answer.kind) {
    case 'refused':
      return { kind: 'relay', response: answer.response }
    case 'events':
      return { kind: 'stream', feed: (out) => passEvents(run, target, request, answer.events, change, out) }
    case 'accepted':
    case 'json':
      return messageReply(run, target, request, answer, change)
  }
}

async function messageReply(run: Run, target: Target, request: RpcRequest, answer: LinkAnswer, change: ChangeAnswer | undefined): Promise<Reply> {
  const { isMultiplexing } = run.config
  if (answer.kind === 'json' && change === undefined && !isMultiplexing) return { kind: 'message', body: watched(run, answer.body, request) }
  const message = await readAnswer(target, answer, request.id, new Flow(), () => undefined)
  run.onAnswer?.(message)
  const text = toText(change?.(message) ?? message)
  return isMultiplexing ? streamOf([text]) : { kind: 'message', body: new BufferBody(text) }
}

/** Longer responses contain no error. */
const MAX_WATCHED_BYTES = 64 * 1024
const ERROR_MEMBER = '"error"'

/** Whether an unchanged response must be read for logs: results of tools if expressions read them, and errors. */
const isLogged = (run: Run, { method }: RpcRequest, text: { includes(word: string): boolean }): boolean =>
  (run.readsResults && method === 'tools/call') || text.includes(ERROR_MEMBER)

/** Observes a body that passes through, for logs. */
function watched(run: Run, body: Body, request: RpcRequest): Body {
  const { onAnswer } = run
  const maxBytes = isLogged(run, request, '') ? (run.maxBufferBytes ?? MAX_BUFFER_BYTES) : MAX_WATCHED_BYTES
  if (onAnswer === undefined || (body.length ?? 0) > maxBytes) return body
  let chunks: Buffer[] | undefined = []
  let size = 0
  return new ObservedBody(body, {
    onData(chunk) {
      size += chunk.length
      if (size > maxBytes) chunks = undefined
      chunks?.push(chunk)
    },
    onClose() {
      const bytes = Buffer.concat(chunks ?? [])
      const message = isLogged(run, request, bytes) ? parseUpstreamMessage(bytes.toString()) : undefined
      if (message !== undefined) onAnswer(message)
    },
  })
}

function passEvents(
  run: Run,
  target: Target,
  request: RpcRequest,
  events: Extract<LinkAnswer, { kind: 'events' }>['events'],
  change: ChangeAnswer | undefined,
  out: EventOutput,
): Flow {
  const flow = new Flow()
  const { isMultiplexing } = run.config
  let isAnswered = false
  const finish = (text: string): void => {
    if (isMultiplexing) out.send(text)
    out.end()
  }
  const pass = (event: SseEvent): void => {
    if (change === undefined && !mayBeMapped(run, event.data)) {
      if (isLogged(run, request, event.data)) report(run, event.data, request)
      return out.write(event)
    }
    // Event ids of several targets would be ambiguous.
    const place = isMultiplexing ? {} : { id: event.id, retry: event.retry }
    const message = event.data === '' ? undefined : parseUpstreamMessage(event.data)
    if (message === undefined) {
      if (!isMultiplexing) out.write(event)
      return
    }
    if (!isAnswerTo(message, request.id)) {
      const mapped = mapServerMessage(run, target, message)
      if (mapped !== undefined) out.write({ ...place, data: mapped === message ? event.data : toText(mapped) })
      return
    }
    isAnswered = true
    run.onAnswer?.(message)
    out.write({ ...place, data: change === undefined ? event.data : changed(message, request, change) })
  }
  flow.add(events)
  events.start({
    onEvent: pass,
    onEnd() {
      if (isAnswered || !isMultiplexing) return out.end()
      finish(errorText(request.id, INTERNAL_ERROR, `${target.name} ended its answer without a result`))
    },
    onError(error) {
      if (!isMultiplexing || isAnswered) return out.fail(error)
      finish(errorText(request.id, INTERNAL_ERROR, brokenAnswer(target, error).message))
    },
  })
  return flow
}

function changed(message: RpcMessage, { id }: RpcRequest, change: ChangeAnswer): string {
  try {
    return toText(change(message))
  } catch (thrown) {
    return errorText(id, INTERNAL_ERROR, thrown instanceof Error ? thrown.message : String(thrown))
  }
}

function report({ onAnswer }: Run, data: string, { id }: RpcRequest): void {
  const message = onAnswer === undefined ? undefined : parseUpstreamMessage(data)
  if (message !== undefined && isAnswerTo(message, id)) onAnswer?.(message)
}
