import { BufferBody } from '../../http/body.ts'
import { runWhileConnected } from '../../runtime/connected.ts'
import { isObject, parseInSteps, type JsonObject } from '../message/json.ts'
import { isServed } from '../message/request.ts'
import { answerText, errorText, INVALID_PARAMS, METHOD_NOT_FOUND, resultText, type RpcId } from '../message/rpc.ts'
import type { EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import type { CallContext, MessageLabel } from '../upstream/call.ts'
import type { Link, LinkAnswer } from '../upstream/link.ts'
import { callTool } from './call.ts'
import { compileApi } from './tools.ts'

type OpenApi = NonNullable<Target['openapi']>

/** Latest protocol revision, for clients that request one that is not supported. */
const LATEST_VERSION = '2025-11-25'

/** Link to an HTTP API. The gateway is the MCP server: it answers everything but `tools/call`, which becomes an HTTP request. */
export function openApiLink(target: Target, openapi: OpenApi): Link {
  return {
    async post(context, text, label) {
      // The API has no use for notifications, and sends no requests that clients respond to.
      if (label.method === undefined || label.id === undefined) return { kind: 'accepted' }
      const answer = await respond(context, target, openapi, text, label.id, label)
      return { kind: 'json', body: new BufferBody(answer) }
    },
    async listen(): Promise<LinkAnswer> {
      return { kind: 'events', events: listChanges(openapi) }
    },
    async end() {},
  }
}

async function respond(context: CallContext, target: Target, { api }: OpenApi, text: string, id: RpcId, { method }: MessageLabel): Promise<string> {
  switch (method) {
    case 'initialize':
      return resultText(id, initializeResult(target, api, await paramsOf(context, text)))
    case 'ping':
      return resultText(id, {})
    case 'tools/list':
      return answerText(id, compileApi(api).list)
    case 'tools/call': {
      const { name, arguments: args } = await paramsOf(context, text)
      const tool = typeof name === 'string' ? compileApi(api).tools.get(name) : undefined
      if (tool === undefined) return errorText(id, INVALID_PARAMS, `Unknown tool: ${String(name)}`)
      return answerText(id, await callTool(context, target, tool, args))
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

function initializeResult({ name }: Target, { title, version, instructions }: OpenApi['api'], { protocolVersion }: JsonObject): JsonObject {
  return {
    protocolVersion: typeof protocolVersion === 'string' && isServed(protocolVersion) ? protocolVersion : LATEST_VERSION,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name, version, ...(title === '' ? {} : { title }) },
    ...(instructions === undefined ? {} : { instructions }),
  }
}

const LIST_CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'

/** Notifications of the target. Its stream stays open until the target is removed. */
function listChanges({ changes }: OpenApi): EventSource {
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
