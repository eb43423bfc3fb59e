import type { Backend, BackendFull, Frontend, Route, Secret, Traffic } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../config/store.ts'
import { Exchange } from '../request/exchange/exchange.ts'
import { Gateway } from '../gateway/gateway.ts'
import { BufferBody, readBody, type Body } from '../http/body.ts'
import { HeaderList } from '../http/headers.ts'
import { isForwardingHeader } from '../http/own-headers.ts'
import { testConnection, testRequest } from '../testing/exchange.ts'
import { UpstreamError } from '../net/upstream/types.ts'
import { testGateway, testListener, testRoute } from '../testing/messages.ts'
import { replaceMessages } from '../testing/store.ts'

/** The time at which a gateway of `start` begins. */
export const nowSeconds = 1_700_000_000

export interface World {
  readonly traffic?: Traffic
  readonly frontend?: Frontend
  readonly backend?: BackendFull
  readonly route?: Partial<Route>
  readonly secrets?: Secret[]
  readonly answer?: number | 'refused' | 'never' | ((headers: Readonly<Record<string, string>>) => number)
  /** Headers of the responses of the backend. */
  readonly answerHeaders?: Readonly<Record<string, string>>
  readonly seconds?: () => number
  /** Health checks of the backend fail. */
  readonly onFailing?: () => void
  readonly remoteAddress?: string
}

export interface Answer {
  readonly status: number | undefined
  readonly text: string
  readonly headers: HeaderList | undefined
  /** Requests to the backend, one for each attempt. */
  readonly forwarded: { target: string; headers: Record<string, string>; bytes: number }[]
  readonly exchange: Exchange
  /** Number of evictions so far. */
  readonly evictions: number
}

/** A gateway with one route to one backend, under the policies of a row; the function sends a request. */
export function start({
  traffic,
  frontend,
  backend,
  route,
  secrets = [],
  answer = 200,
  answerHeaders = {},
  seconds = () => nowSeconds,
  onFailing = () => {},
  remoteAddress = testConnection.remoteAddress,
}: World) {
  let forwarded: Answer['forwarded'] = []
  let evictions = 0
  const respond = async (target: string, headers: Record<string, string>, body: Body | undefined) => {
    if (answer === 'refused') throw new UpstreamError('connect', 'refused')
    const { bytes } = await readBody(body, 10_000_000)
    forwarded.push({ target, headers, bytes: bytes.length })
    if (answer === 'never') return new Promise<never>(() => undefined)
    const status = typeof answer === 'function' ? answer(headers) : answer
    return { status, headers: HeaderList.from(Object.entries(answerHeaders)), body: new BufferBody('ok'), upgraded: undefined }
  }
  const gateway = new Gateway({
    createPool: (_, { tunnel }) => ({
      size: 0,
      close: () => {},
      call: ({ target, headers, body }) => {
        // Like a real connection.
        const opened = Promise.resolve().then(() => void tunnel?.connect('api:80'))
        let cancel: (error: Error) => void = () => undefined
        const cancelled = new Promise<never>((_resolve, reject) => (cancel = reject))
        return {
          response: Promise.race([
            opened.then(() => respond(target, Object.fromEntries([...headers].filter(([name]) => !isForwardingHeader(name))), body)),
            cancelled,
          ]),
          cancel: (reason) => cancel(reason),
        }
      },
    }),
    clocks: { epochMs: () => seconds() * 1000 },
    onEviction: (_, { kind }) => {
      if (kind === 'evicted') evictions++
      if (kind === 'down') onFailing()
    },
  })
  const api: Backend = { key: 'ns/api', static: { host: 'api', port: 80 }, ...(backend && { policies: backend }) }
  const messages: ConfigMessage[] = [
    ...testListener,
    testRoute({ backend: 'ns/api' }, route),
    { kind: 'backend', message: api },
    {
      kind: 'policy',
      message: {
        key: 'p',
        policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
        target: testGateway,
        traffic: traffic ?? {},
        ...(frontend && { frontend }),
      },
    },
    ...secrets.map((message) => ({ kind: 'secret' as const, message })),
  ]
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  replaceMessages(store, messages)
  return async (lines: [string, string][] = [], body?: Body): Promise<Answer> => {
    forwarded = []
    const request = testRequest({ method: body === undefined ? 'GET' : 'POST', target: '/a', body, headers: HeaderList.from(lines) })
    const exchange = new Exchange({ ...testConnection, remoteAddress }, request, performance.now())
    await gateway.handle(exchange)
    const { response } = exchange
    return {
      status: response?.status,
      text: (await readBody(response?.body, 10_000)).bytes.toString(),
      headers: response?.headers,
      forwarded,
      exchange,
      evictions,
    }
  }
}
