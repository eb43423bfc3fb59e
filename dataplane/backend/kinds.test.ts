import { afterEach, describe, expect, test } from '@jest/globals'
import { backendDefinitions } from '#api/config/backend.ts'
import type { Backend } from '#gen/config/types.ts'
import { createConfigStore } from '../config/store.ts'
import { Gateway } from '../gateway/gateway.ts'
import { BufferBody, readBody } from '../http/body.ts'
import { addressKinds } from '../net/destination/kinds.ts'
import { startHttp1Server } from '../net/server/http1/testing.ts'
import { createPool } from '../net/upstream/pools.ts'
import { createServiceLoader } from '../program/services.ts'
import { Exchange } from '../request/exchange/exchange.ts'
import { testConnection, testExchange, testRequest } from '../testing/exchange.ts'
import { testListener, testRoute } from '../testing/messages.ts'
import { replaceMessages } from '../testing/store.ts'
import { kindOf, kinds, type BackendKind, type BackendKinds } from './kinds.ts'

const open: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

/** What a kind that the schema does not have yet would be. */
type Part = Pick<NonNullable<Backend['static']>, 'host' | 'port'>

/** The response to a request for a backend of the kind `echo`. */
async function send(echo: BackendKind<Part>, part: Part): Promise<{ readonly text: string; readonly exchange: Exchange }> {
  const all = { ...kinds, echo } satisfies BackendKinds
  const { factories, load, close } = createServiceLoader({ onEviction: () => undefined, keys: [], version: '1' }, all)
  const gateway = new Gateway({ createPool, kinds: all, factories })
  open.push(() => gateway.close())
  const store = createConfigStore()
  const message = { key: 'ns/echo', echo: part } as Backend
  await load({ ...store.snapshot(), backends: new Map([['ns/echo', message]]) })
  store.subscribe((snapshot) => gateway.update(snapshot))
  replaceMessages(store, [...testListener, testRoute({ backend: 'ns/echo' }), { kind: 'backend', message }])
  const exchange = new Exchange(testConnection, testRequest({ target: '/said' }), performance.now())
  await gateway.handle(exchange)
  const text = (await readBody(exchange.response?.body, 1000)).bytes.toString()
  await close()
  return { text: `${exchange.response?.status} ${text}`, exchange }
}

describe('the list of kinds', () => {
  test('has one entry for each field of a backend in the schema', () => {
    const { properties } = backendDefinitions['Backend'] as { properties: object }
    expect(Object.keys(kinds).toSorted()).toEqual(
      Object.keys(properties)
        .filter((name) => !['key', 'policies', 'rollouts'].includes(name))
        .toSorted(),
    )
  })

  test('gives each kind either a destination or a service', () => {
    const all = Object.entries<BackendKind<never>>(kinds)
    expect(all.filter(([, { destination, load }]) => (destination === undefined) === (load === undefined)).map(([name]) => name)).toEqual([])
  })

  test('finds the kind of a backend with its part', () => {
    const part = { host: 'a', port: 1 }
    expect(kindOf({ key: 'ns/a', a2a: part })).toEqual({ name: 'a2a', kind: kinds.a2a, part })
    expect(kindOf({ key: 'ns/a' })).toBeUndefined()
  })
})

describe('a kind that is added to the list, with no other line', () => {
  const part = { host: '127.0.0.1', port: 80 }

  test('handles requests with its service, which is loaded for the first config that needs it and ends with the process', async () => {
    const steps: string[] = []
    const echo: BackendKind<Part> = {
      node: 'static',
      async load({ version }) {
        steps.push(`loaded in ${version}`)
        return {
          create: ({ backend }) => ({
            handle: async ({ request }) => {
              const { headers } = testExchange().request
              return { status: 200, headers, upgraded: undefined, body: new BufferBody(`${backend.key} echoes ${request.target}`) }
            },
            update: () => undefined,
            close: () => undefined,
          }),
          end: async () => void steps.push('ended'),
        }
      },
    }
    expect((await send(echo, part)).text).toBe('200 ns/echo echoes /said')
    expect(steps).toEqual(['loaded in 1', 'ended'])
  })

  test('sends requests to its destination, and changes requests and responses with its hooks', async () => {
    const upstream = await startHttp1Server(async (exchange) => {
      const { headers } = testExchange().request
      exchange.response = { status: 200, headers, upgraded: undefined, body: new BufferBody(`got ${exchange.request.headers.get('x-echo')}`) }
    })
    open.push(() => upstream.close())
    const echo: BackendKind<Part> = {
      ...addressKinds.static,
      node: 'static',
      hooks: ({ port }) => ({
        prepare({ request }) {
          request.headers.set('x-echo', `for ${port === upstream.port}`)
          return { finish: async (response) => ({ ...response, status: 203 }) }
        },
      }),
      endpoint: (given) => given,
    }
    const { text, exchange } = await send(echo, { ...part, port: upstream.port })
    expect(text).toBe('203 got for true')
    expect(exchange.endpoint).toBe(`127.0.0.1:${upstream.port}`)
  })

  test('responds with 500 if its service is not loaded, as any backend that does not exist', async () => {
    const { exchange } = await send({ node: 'static' }, part)
    expect(exchange.error?.code).toBe('BACKEND_NOT_FOUND')
  })
})
