import type { Body } from '../../http/body.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { EventSource } from '../sse/source.ts'
import type { CallContext, MessageLabel } from './call.ts'

/** Methods that change nothing when they come twice. A tool may, and so may what we do not know. */
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
])

/** Whether a message may be sent again after a target answered it with a status that the retry policy names. */
export const isRepeatable = (method: string | undefined): boolean => method !== undefined && REPEATABLE.has(method)

export type LinkAnswer =
  /** 202: a notification or response was taken. */
  | { readonly kind: 'accepted' }
  /** One message, its text not read. */
  | { readonly kind: 'json'; readonly body: Body }
  /** Messages as they come. */
  | { readonly kind: 'events'; readonly events: EventSource }
  /** An HTTP status that says no; for the client as it is. */
  | { readonly kind: 'refused'; readonly response: ResponseHead }

/** What our session with a client keeps of its session with one target. */
export interface LinkState {
  sessionId: string | undefined
  /** `host:port` that the target's session lives on. */
  endpoint: string | undefined
  /** First letters of what the server offers, see `initialize.ts`; undefined: unknown. */
  offers: string | undefined
  /** It was not there at `initialize` (failureMode FailOpen). */
  isMissing: boolean
}

/** One target in one session. Calls reject as `callTarget` does. */
export interface Link {
  /** Sends a message. */
  post(context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer>
  /** Opens the stream of what the server sends by itself. */
  listen(context: CallContext, lastEventId: string | undefined): Promise<LinkAnswer>
  /** Ends the session. */
  end(context: CallContext): Promise<void>
}
