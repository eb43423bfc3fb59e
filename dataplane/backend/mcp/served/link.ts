import { BufferBody } from '../../../http/body.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { isObject, parseInSteps, type JsonObject } from '../message/json.ts'
import { isServed } from '../message/request.ts'
import { answerText, errorText, INVALID_PARAMS, METHOD_NOT_FOUND, resultText, type RpcId } from '../message/rpc.ts'
import type { EventSource } from '../sse/source.ts'
import type { ListChanges } from '../target/list-changes.ts'
import type { CallContext, MessageLabel } from '../upstream/call.ts'
import type { Link, LinkAnswer, LinkState } from '../upstream/link.ts'
import { cancelCall, StartedCall } from '../upstream/started-call.ts'

/** An API whose operations are tools. The gateway is the MCP server. */
export interface ServedApi {
  readonly name: string
  readonly version: string
  /** Empty if there is none. */
  readonly title: string
  readonly instructions?: string | undefined
  readonly changes: ListChanges
  /** The result of `tools/list`, in JSON. Rejects if the API cannot be reached. */
  list(context: CallContext): string | Promise<string>
  /** The result of a call, in JSON; undefined if there is no such tool. Rejects if the API cannot be reached. */
  call(context: CallContext, tool: string, args: unknown): Promise<string | undefined>
}

/** Latest protocol revision, for clients that request one that is not supported. */
const LATEST_VERSION = '2025-11-25'

/** Link to an API. The gateway answers everything but lists and calls of tools itself. A cancelled request rejects with a CancelledError. */
export function servedLink(api: ServedApi, state: LinkState): Link {
  return {
    async post(context, text, label) {
      const { method, id } = label
      if (method === 'notifications/cancelled') cancelCall(state, (await paramsOf(context, text))['requestId'])
      // The API has no use for notifications, and sends no requests that clients respond to.
      if (method === undefined || id === undefined) return { kind: 'accepted' }
      const call = new StartedCall(state, id)
      try {
        const answer = await respond({ ...context, cancellation: call.cancellation }, api, text, id, label)
        call.cancellation.throwIfAborted()
        return { kind: 'json', body: new BufferBody(answer) }
      } catch (error) {
        throw call.causeOf(error)
      } finally {
        call.end()
      }
    },
    async listen(): Promise<LinkAnswer> {
      return { kind: 'events', events: listChanges(api) }
    },
    async end() {},
  }
}

async function respond(context: CallContext, api: ServedApi, text: string, id: RpcId, { method, shownName }: MessageLabel): Promise<string> {
  switch (method) {
    case 'initialize':
      return resultText(id, initializeResult(api, await paramsOf(context, text)))
    case 'ping':
      return resultText(id, {})
    case 'tools/list':
      return answerText(id, await api.list(context))
    case 'tools/call': {
      const { name, arguments: args } = await paramsOf(context, text)
      const result = typeof name === 'string' ? await api.call(context, name, args) : undefined
      return result === undefined ? errorText(id, INVALID_PARAMS, `Unknown tool: ${shownName ?? String(name)}`) : answerText(id, result)
    }
    default:
      return errorText(id, METHOD_NOT_FOUND, `Method not found: ${method}`)
  }
}

/** The message was checked when it was received. */
async function paramsOf({ exchange }: CallContext, text: string): Promise<JsonObject> {
  const message = await runWhileConnected(parseInSteps(text, exchange.jsonLimits), exchange)
  return isObject(message) && isObject(message['params']) ? message['params'] : {}
}

function initializeResult({ name, title, version, instructions }: ServedApi, { protocolVersion }: JsonObject): JsonObject {
  return {
    protocolVersion: typeof protocolVersion === 'string' && isServed(protocolVersion) ? protocolVersion : LATEST_VERSION,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name, version, ...(title === '' ? {} : { title }) },
    ...(instructions === undefined ? {} : { instructions }),
  }
}

const LIST_CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'

/** Notifications of the target. Its stream stays open until the target is removed. */
function listChanges({ changes }: ServedApi): EventSource {
  let stop: (() => void) | undefined
  return {
    start(sink) {
      stop = changes.listen({ onChange: () => sink.onEvent({ data: LIST_CHANGED }), onEnd: () => sink.onEnd() })
    },
    pause() {},
    resume() {},
    cancel: () => stop?.(),
  }
}
