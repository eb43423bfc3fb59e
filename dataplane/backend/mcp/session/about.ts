import { isObject, type JsonObject } from '../message/json.ts'

/** What a client said when it started its session, shortened, for people who look at the session. */
export interface SessionAbout {
  client: { readonly name: string; readonly version: string } | undefined
  /** Protocol revision of its last message. */
  revision: string | undefined
  /** Monotonic; undefined if another process handled `initialize`. */
  startedAtMs: number | undefined
}

const MAX_CHARS = 64
const REVISION = /^\d{4}-\d{2}-\d{2}$/

export const nothingKnown = (): SessionAbout => ({ client: undefined, revision: undefined, startedAtMs: undefined })

/** Records the parameters of `initialize`. */
export function recordStart(about: SessionAbout, params: JsonObject | undefined, nowMs: number): void {
  about.startedAtMs = nowMs
  recordRevision(about, params?.['protocolVersion'])
  recordClient(about, params?.['clientInfo'])
}

function recordClient(about: SessionAbout, info: unknown): void {
  if (!isObject(info)) return
  const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_CHARS) : '')
  about.client = { name: text(info['name']), version: text(info['version']) }
}

/** Records the revision of a message: a header, or a parameter of `initialize`. */
export function recordRevision(about: SessionAbout, revision: unknown): void {
  if (typeof revision === 'string' && revision !== about.revision && REVISION.test(revision)) about.revision = revision
}
