import type { Body } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import type { EventSource } from '../sse/source.ts'
import type { RpcMessage } from '../message/rpc.ts'
import type { CallContext, MessageLabel } from './call.ts'

/** Idempotent methods. Tools and unknown methods may have side effects. */
const REPEATABLE = new Set([
  'initialize',
  'ping',
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'completion/complete',
  'logging/setLevel',
  'server/discover',
])

/** Whether a message may be sent again after a target may have processed it. */
export const isRepeatable = (method: string | undefined): boolean => method !== undefined && REPEATABLE.has(method)

/** The response of a target to a message, classified (mcp.md §3.3). */
export type LinkAnswer =
  /** 202: a notification or response was accepted. */
  | { readonly kind: 'accepted' }
  /** One message, not read yet. */
  | { readonly kind: 'json'; readonly body: Body }
  /** A stream of messages. */
  | { readonly kind: 'events'; readonly events: EventSource }
  /** A response with an HTTP error status, which the client receives unchanged. */
  | { readonly kind: 'refused'; readonly response: ResponseHead }

/** State of the session with one target, stored in the client's session. */
export interface LinkState {
  sessionId: string | undefined
  /** `host:port` of the instance that holds the target's session. */
  endpoint: string | undefined
  /** Letters of the server's capabilities, see `initialize.ts`; undefined if unknown. */
  offers: string | undefined
  /** Protocol revision of messages to the target; undefined: that of the client's messages. */
  version?: string | undefined
  /** Targets without sessions: the level that the client set, the resources that it subscribed to, and what tells its stream of a change. */
  logLevel?: string | undefined
  subscriptions?: Set<string> | undefined
  onSubscribe?: (() => void) | undefined
  /** Targets without sessions, and APIs: cancels the call of a request, by the key of its id. */
  calls?: Map<string, () => void> | undefined
  /** Targets without sessions: receive the client's responses to requests for input, by id. */
  inputs?: Map<string, (response: RpcMessage) => void> | undefined
  /** The target was not available at `initialize` (failureMode FailOpen). */
  isMissing: boolean
}

/** The connection of one session with one target. Calls reject like `callTarget`. */
export interface Link {
  /** Sends a message. */
  post(context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer>
  /** Opens the stream of messages that the server sends on its own. */
  listen(context: CallContext, lastEventId: string | undefined): Promise<LinkAnswer>
  /** Ends the session. */
  end(context: CallContext): Promise<void>
}

/** A live connection of one session to a target, whose responses arrive on one stream. */
export interface Connection {
  readonly isClosed: boolean
  /** Sends a message. Rejects with a DuplicateIdError, or like `callTarget`. */
  post(context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer>
  /** Messages that the server sends on its own. A new listener replaces the previous one. */
  listen(): EventSource
  close(): void
}
