import { createHash, randomBytes } from 'node:crypto'
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi'
import type { Context, MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { KEY_BYTES, newKey } from '#api/credentials/new-key.ts'
import { editPreview, editRequest, editResult, editState, type EditPreview, type EditRequest, type EditState } from '#api/management/edits.ts'
import type { Logging } from '../../../observe/telemetry/log.ts'
import { failed, json } from '../responses.ts'

/** A change with the digests of the keys that it creates. */
type ReadyChange = EditRequest['changes'][number] & { readonly keyHash?: string }

export interface ReadyEdit extends Omit<EditRequest, 'changes'> {
  readonly changes: readonly ReadyChange[]
}

/** What the management API changes: a config file, or the objects of a cluster. */
export interface EditTarget {
  /** Who changes it, for the audit log. */
  readonly who: () => string
  read(): Promise<EditState>
  preview(edit: ReadyEdit): Promise<EditPreview>
  /** Writes valid changes; the result has problems, or what was written. */
  apply(edit: ReadyEdit): Promise<EditPreview & { readonly revision: string; readonly backup: string | null }>
}

/** Why nothing is changed. `status` is that of the response. */
interface Refusal extends Error {
  readonly status: number
}

const isRefusal = (error: unknown): error is Refusal => error instanceof Error && 'status' in error && typeof error.status === 'number' && error.status < 500

/** Each of the requests starts a process or calls the API server. */
const MAX_PER_MINUTE = 60
const MAX_BODY = 512 * 1024

const body = { required: true, content: { 'application/json': { schema: editRequest } } } as const
const disabled = failed('Nothing can be changed.')
const conflict = failed('Another change was made meanwhile, or others own the fields.')
const tooLong = failed('The request or the file is too long.')
const tooMany = failed('More than 60 requests in a minute.')

const readEdits = createRoute({
  method: 'get',
  path: '/api/v1/edits',
  summary: 'What the console may change',
  responses: { 200: json(editState, 'Credentials are redacted.'), 429: tooMany },
})

const previewEdits = createRoute({
  method: 'post',
  path: '/api/v1/edits/preview',
  summary: 'The difference that changes would make; nothing is written',
  request: { body },
  responses: {
    200: json(editPreview, 'The difference, or why the changes are invalid.'),
    400: failed('The request is invalid.'),
    403: disabled,
    409: conflict,
    413: tooLong,
    429: tooMany,
  },
})

const applyEdits = createRoute({
  method: 'post',
  path: '/api/v1/edits/apply',
  summary: 'Writes changes, and records them in the audit log',
  request: { body },
  responses: {
    200: json(editResult, 'The changes are written.'),
    400: failed('The request is invalid.'),
    422: json(editPreview, 'The changes are invalid; nothing is written.'),
    403: disabled,
    409: conflict,
    413: tooLong,
    429: tooMany,
  },
})

interface EditOptions {
  /** A text: why nothing can be changed. */
  readonly target: EditTarget | string
  readonly logging: Pick<Logging, 'logger'>
}

/** Reads and changes the config for the console. */
export function registerEdits(app: OpenAPIHono, { target, logging }: EditOptions): void {
  app.use('/api/v1/edits/*', bodyLimit({ maxSize: MAX_BODY, onError: (c) => c.json({ error: 'body: is longer than 512 KiB' }, 413) }))
  // A form of another page cannot send this type without permission.
  app.use('/api/v1/edits/*', async (c, next) => {
    if (c.req.method !== 'POST' || /^application\/json\s*(?:;|$)/i.test(c.req.header('content-type') ?? '')) return next()
    return c.json({ error: 'content-type: send application/json' }, 415)
  })
  app.use('/api/v1/edits/*', limitRate())
  app.openapi(readEdits, async (c) => {
    if (typeof target === 'string') return c.json({ enabled: false, reason: target, target: '', revision: '', fields: [], keys: [], problems: [] }, 200)
    try {
      return c.json(await target.read(), 200)
    } catch (error) {
      if (!isRefusal(error)) throw error
      return c.json({ enabled: false, reason: error.message, target: '', revision: '', fields: [], keys: [], problems: [] }, 200)
    }
  })
  app.openapi(previewEdits, async (c) => {
    if (typeof target === 'string') return c.json({ error: target }, 403)
    try {
      // The difference shows no credential, so that any key has the same.
      return c.json(await target.preview(withKeys(c.req.valid('json')).edit), 200)
    } catch (error) {
      return refuse(c, error)
    }
  })
  app.openapi(applyEdits, async (c) => {
    const request = c.req.valid('json')
    const record = (outcome: string, diff: EditPreview['diff'] = []): void =>
      logging.logger('audit').info('config edit', {
        who: typeof target === 'string' ? 'management port' : target.who(),
        changes: request.changes.map(describeChange).join(', '),
        diff: `sha256:${createHash('sha256').update(JSON.stringify(diff)).digest('hex')}`,
        outcome,
      })
    if (typeof target === 'string') {
      record(`rejected: ${target}`)
      return c.json({ error: target }, 403)
    }
    const { edit, keys } = withKeys(request)
    try {
      const { revision, backup, ...result } = await target.apply(edit)
      record(result.problems.length > 0 ? 'rejected: invalid' : 'applied', result.diff)
      return result.problems.length > 0 ? c.json(result, 422) : c.json({ ...result, revision, backup, keys: [...keys] }, 200)
    } catch (error) {
      record(isRefusal(error) ? `rejected: ${error.message}` : 'failed')
      return refuse(c, error)
    }
  })
}

function refuse(c: Context, error: unknown) {
  if (!isRefusal(error)) throw error
  return c.json({ error: error.message }, error.status as 409)
}

/** Creates the keys of a request. Only their digests are written. */
function withKeys({ changes, ...rest }: EditRequest): { readonly edit: ReadyEdit; readonly keys: readonly { readonly name: string; readonly key: string }[] } {
  const keys: { name: string; key: string }[] = []
  const ready = changes.map((change): ReadyChange => {
    if (!('key' in change) || change.key.action === 'revoke') return change
    const { key, keyHash } = newKey(randomBytes(KEY_BYTES))
    keys.push({ name: change.key.name, key })
    return { ...change, keyHash }
  })
  return { edit: { ...rest, changes: ready }, keys }
}

/** The place of a change, without its value. */
function describeChange(change: EditRequest['changes'][number]): string {
  if ('key' in change) return `${change.key.action} key ${change.key.name} of ${change.key.list}`
  const place = [...(change.object === null ? [] : [change.object]), change.path.join('.')].join(' ')
  return `${change.text === null ? 'remove' : 'set'} ${place}`
}

/** At most so many requests in a minute. */
function limitRate(): MiddlewareHandler {
  let [startedAtMs, count] = [0, 0]
  return async (c, next) => {
    if (Date.now() - startedAtMs >= 60_000) [startedAtMs, count] = [Date.now(), 0]
    count++
    if (count > MAX_PER_MINUTE) return c.json({ error: `more than ${MAX_PER_MINUTE} requests in a minute; wait` }, 429)
    return next()
  }
}
